/**
 * Changes a line of a subscription (docs/rules/subscriptions.md, "Lines that come and go"). Metadata changes in place. A change of the
 * charge creates a following line, at `effective_from` or now.
 */

import { CRITICAL_FIELDS } from '../../../core/catalog/price/record.ts';
import { hasSameTimes } from '../../../core/catalog/price/time-buckets.ts';
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { formatMs } from '../../../core/foundation/time/instant.ts';
import { priceReset } from '../../../core/metering/price-reset.ts';
import { runningPeriod } from '../../../core/rating/charges.ts';
import { changedCommitment, type RequestedCommitment } from '../../../core/rating/commitments/line-item-commitment.ts';
import { deriveLineChange } from '../../../core/subscriptions/line-changes.ts';
import { buildLinePrice, toLineCharge } from '../../../core/subscriptions/line-price.ts';
import { parseChangedQuantity } from '../../../core/subscriptions/quantity.ts';
import type { ProrationBehavior, SubscriptionLineItem } from '../../../core/subscriptions/record.ts';
import { checkOneLevel } from '../../../core/subscriptions/requested-commitments.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import type { PriceModel } from '../../../storage/models/catalog/price.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { isPriceUnchanged } from '../../catalog/prices/change-price.ts';
import {
  buildTimeBuckets,
  loadUnitSymbol,
  type PriceWriteContext,
  storePrice,
} from '../../catalog/prices/create-price.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { type BillableItem, toBilledSubscription } from '../../rating/billable-items.ts';
import { applyLineChange } from './apply-line-change.ts';
import { type LineStart, planLineChange } from './change-lines.ts';
import { emitLinesChanged, type LockedSubscription, lockLine } from './lock-lines.ts';

type LineChangeRequest = RequestedCommitment & {
  effective_from: string | null;
  quantity?: string | null | undefined;
  proration_behavior: ProrationBehavior | null;
  metadata?: SubscriptionLineItem['metadata'];
};

/** Changes a line. Returns it, or the line that follows it if the charge changes. */
export async function changeLineItem(
  stores: Stores,
  scope: Scope,
  { id, request, author }: { id: string; request: LineChangeRequest; author: Author },
): Promise<SubscriptionLineItemModel> {
  return runBillingTransaction(stores, async (transaction) => {
    const writing = { scope, database: transaction, author };
    const locked = await lockLine(stores, id, writing);
    const follows = await planSuccessorLine(locked, request, writing);
    if (follows === null) return describe(locked, request, { transaction, author });
    const plan = await planLineChange(transaction, {
      subscription: locked.subscription,
      ends: [{ item: locked.item, at: follows.at }],
      begins: [follows.begin],
      proration_behavior: request.proration_behavior ?? 'create_prorations',
      author,
    });
    const { begun } = await applyLineChange(stores, transaction, plan);
    await emitLinesChanged(transaction, locked.subscription, author);
    return begun[0]!;
  });
}

type LockedLine = LockedSubscription & { item: BillableItem };

/** Plans the line that follows the changed one. Returns null if the charge does not change. */
async function planSuccessorLine(
  locked: LockedLine,
  request: LineChangeRequest,
  writing: PriceWriteContext,
): Promise<{ at: number; begin: LineStart } | null> {
  const { subscription, times, item } = locked;
  const { line_item, meter } = item;
  checkOneLevel(subscription, request);
  const charged = { price: item.price, bucket_size: meter?.aggregation.bucket_size ?? null };
  const isRepriced = Object.keys(toLineCharge(request)).length > 0;
  const quantity = parseChangedQuantity(request.quantity, item);
  if (!isRepriced && quantity === null && changedCommitment(request, line_item, charged) === null) {
    if (request.effective_from)
      throw invalid(
        'effective_from',
        `needs a change of the quantity, of a commitment or of one of ${CRITICAL_FIELDS.join(', ')}`,
      );
    return null;
  }
  const { current, now } = times;
  const running = runningPeriod(item, { subscription: toBilledSubscription(subscription), current, now }) ?? current;
  const reset_usage = meter && priceReset(meter);
  const at = deriveLineChange(line_item, { ...item, reset_usage, running }, request.effective_from, times);
  const price = (isRepriced ? await ownPrice(locked, { request, at }, writing) : null) ?? item.price;
  const commitment = changedCommitment(request, line_item, { ...charged, price });
  if (price === item.price && commitment === null && quantity === null) return null;
  const life = { start_date: formatMs(at), metadata: request.metadata ?? line_item.metadata };
  return {
    at,
    begin: {
      terms: { ...line_item, ...commitment, ...life, ...(quantity === null ? {} : { quantity }), price_id: price.id },
      price,
      meter,
      follows: item,
      continues: item,
    },
  };
}

/** Creates a price for this line alone; null if its price already charges this way. */
async function ownPrice(
  { subscription, item: { price: before, meter } }: LockedLine,
  { request, at }: { request: LineChangeRequest; at: number },
  writing: PriceWriteContext,
): Promise<PriceModel | null> {
  const { commitment_time_buckets: times = null, ...charge } = toLineCharge(request);
  const symbol = await loadUnitSymbol(before, writing);
  const place = { subscription_id: subscription.id, start_date: formatMs(at), symbol };
  const definition = buildLinePrice(before, charge, place);
  if (times === null) return isPriceUnchanged(before, charge, definition) ? null : storePrice(definition, writing);
  const commitment_time_buckets = buildTimeBuckets({ ...definition, commitment_time_buckets: times }, meter, writing);
  const isSame = hasSameTimes(commitment_time_buckets, before.commitment_time_buckets);
  if (isSame && isPriceUnchanged(before, charge, definition)) return null;
  return storePrice({ ...definition, commitment_time_buckets }, writing);
}

async function describe(
  { subscription, item }: LockedLine,
  { metadata }: LineChangeRequest,
  { transaction, author }: { transaction: Transaction; author: Author },
): Promise<SubscriptionLineItemModel> {
  if (metadata === undefined) return item.line_item;
  const by = { by: author, database: transaction };
  const changed = await SubscriptionLineItemModel.change(item.line_item, { metadata }, by);
  await emitLinesChanged(transaction, subscription, author);
  return changed;
}
