/**
 * Adds a line to an existing subscription (docs/rules/subscriptions.md, "Lines that come and go"), with an existing price or an inline one.
 * Its advance charge for the running period is invoiced at once.
 */

import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { checkOnePrice } from '../../../core/subscriptions/inline-price.ts';
import { planAddedInterval, planPhaseInterval } from '../../../core/subscriptions/line-changes.ts';
import type { ExtraLineItem } from '../../../core/subscriptions/line-shapes.ts';
import { buildLineItem, toLineEntity } from '../../../core/subscriptions/lines.ts';
import { checkOneLevel, checkUntimed, isCommitted } from '../../../core/subscriptions/requested-commitments.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import type { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { SubscriptionPhaseModel } from '../../../storage/models/subscriptions/subscription-phase.ts';
import type { PriceWriteContext } from '../../catalog/prices/create-price.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { storeInlinePrice } from '../../subscriptions/inline-price.ts';
import { createCommittedLine } from '../../subscriptions/line-commitments.ts';
import { checkSharedMeters } from '../../subscriptions/shared-meters.ts';
import { applyLineChange } from './apply-line-change.ts';
import { type LineStart, planLineChange } from './change-lines.ts';
import { emitLinesChanged, type LockedSubscription, lockSubscription } from './lock-lines.ts';

type LineAddition = { subscription_id: string; request: ExtraLineItem; author: Author };

export async function addLineItem(
  stores: Stores,
  scope: Scope,
  { subscription_id, request, author }: LineAddition,
): Promise<SubscriptionLineItemModel> {
  checkOnePrice(request);
  return runBillingTransaction(stores, async (transaction) => {
    const writing = { scope, database: transaction, author };
    const locked = await lockSubscription(stores, subscription_id, writing);
    const plan = await planLineChange(transaction, {
      subscription: locked.subscription,
      ends: [],
      begins: [await createLineStart(locked, request, writing)],
      proration_behavior: request.proration_behavior ?? 'create_prorations',
      author,
    });
    const { begun } = await applyLineChange(stores, transaction, plan);
    await checkSharedMeters(transaction, locked.subscription, begun);
    await emitLinesChanged(transaction, locked.subscription, author);
    return begun[0]!;
  });
}

async function createLineStart(
  { subscription, times }: LockedSubscription,
  request: ExtraLineItem,
  writing: PriceWriteContext,
): Promise<LineStart> {
  const { scope, database, author } = writing;
  checkOneLevel(subscription, request);
  const shared = await loadLinePrice(subscription, request, writing);
  if (isCommitted(subscription)) checkUntimed([shared], request.price ? 'price' : 'price_id');
  const committing = { price: shared, requested: request, subscription, prefix: '' };
  const { price, commitment } = await createCommittedLine(writing, committing, database);
  const meter = price.meter_id ? await MeterModel.fetch(scope, price.meter_id, { database }) : null;
  const plan = await PlanModel.fetch(scope, subscription.plan_id, { database });
  const { display_name, metadata, quantity } = request;
  const terms = buildLineItem({
    price,
    subscription,
    quantity,
    now: author.now.getTime(),
    commitment,
    entity: toLineEntity(shared, plan),
    meter_name: meter?.name ?? null,
    requested: { display_name, metadata },
  });
  const phase = await findLinePhase(subscription, request, writing);
  const life = planAddedInterval(phase ? planPhaseInterval(request, phase, times) : request, price, times);
  return { terms: { ...terms, ...life, subscription_phase_id: phase?.id ?? null }, price: price as PriceModel, meter };
}

async function findLinePhase(
  { id }: LockedSubscription['subscription'],
  { subscription_phase_id }: ExtraLineItem,
  { scope, database }: PriceWriteContext,
): Promise<SubscriptionPhaseModel | null> {
  if (!subscription_phase_id) return null;
  const phase = await SubscriptionPhaseModel.fetchPublished(scope, subscription_phase_id, { database });
  if (phase.subscription_id !== id)
    throw invalid('subscription_phase_id', `is of subscription ${phase.subscription_id}`);
  return phase;
}

async function loadLinePrice(
  subscription: LockedSubscription['subscription'],
  { price_id, price: inline, start_date }: ExtraLineItem,
  writing: PriceWriteContext,
): Promise<PriceModel> {
  const { scope, database, author } = writing;
  if (inline) {
    const from = start_date ?? author.now.toISOString();
    return storeInlinePrice(inline, { subscription, start_date: from, field: 'price' }, writing);
  }
  const price = await PriceModel.fetchPublished(scope, price_id!, { database });
  if (price.currency !== subscription.currency)
    throw invalid('price_id', `is in ${price.currency}, the subscription in ${subscription.currency}`);
  if (price.entity_type === 'COSTSHEET')
    throw invalid('price_id', 'is the price of a cost sheet, which nobody is charged');
  if (price.entity_type === 'SUBSCRIPTION' && price.entity_id !== subscription.id)
    throw invalid('price_id', 'is the price of another subscription');
  return price;
}
