/** Applies a planned change of lines (change-lines.ts) in the transaction that holds the lock on the subscription. */

import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import { hasOwnPeriods } from '../../../core/rating/charges.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { lockCreditNoteNumbers } from '../../invoicing/credit-notes/note-number.ts';
import { type SettledChange, type Settlement, settleChange } from '../../invoicing/invoices/settle-change.ts';
import { type BillableItem, toBilledSubscription, toScope } from '../../rating/billable-items.ts';
import { activateAfterLowered } from '../effects.ts';
import type { LineChangePlan } from './change-lines.ts';
import { computeDrafts } from './open-drafts.ts';
import type { LineChangeEnd } from './retained-charges.ts';

export type AppliedLines = {
  ended: SubscriptionLineItemModel[];
  begun: SubscriptionLineItemModel[];
  settled: SettledChange | null;
  refunded: SettledChange[];
};

export async function applyLineChange(
  stores: Stores,
  transaction: Transaction,
  plan: LineChangePlan,
): Promise<AppliedLines> {
  const { subscription, ends, begins, settlement, refunds, drafts, released, anchor, anchored, author } = plan;
  const by = { by: author, database: transaction };
  const ended: SubscriptionLineItemModel[] = [];
  for (const end of ends)
    ended.push(await SubscriptionLineItemModel.change(end.item.line_item, deriveEndChanges(end, plan), by));
  for (const { item, at } of released)
    await SubscriptionLineItemModel.change(item.line_item, { charged_until: formatMs(at) }, by);
  for (const item of anchored)
    await SubscriptionLineItemModel.change(item.line_item, deriveAnchorChanges(anchor, item, subscription), by);
  const added = await addLines(transaction, subscription, begins);
  if (settlement) await lockBeforeSettlement(transaction, settlement, refunds);
  // The change is settled before the drafts are recomputed, so that the drafts do not charge the same amounts.
  const settled = settlement && (await settleChange(transaction, settlement));
  const refunded: SettledChange[] = [];
  for (const refund of refunds) refunded.push(await settleChange(transaction, refund));
  const lowered = [settled ?? [], refunded].flat().flatMap((one) => one.lowered);
  await activateAfterLowered(stores, transaction, { lowered, by: author });
  await computeDrafts(stores, transaction, { subscription, drafts, now: author.now });
  return { ended, begun: added, settled, refunded };
}

/**
 * The settlement may take an invoice number, and its refunds take numbers of credit notes, whose counter comes first
 * (actions/subscriptions/lock-in-order.ts).
 */
async function lockBeforeSettlement(
  transaction: Transaction,
  { subscription, payer_id, author }: Settlement,
  refunds: readonly Settlement[],
): Promise<void> {
  if (refunds.length === 0) return;
  const payer_ids = [payer_id, ...refunds.map((refund) => refund.payer_id)];
  await WalletModel.lockPrepaidWallets(toScope(subscription), payer_ids, transaction);
  await lockCreditNoteNumbers(transaction, toScope(subscription), author.now);
}

/** Derives the changed columns of a line that ends. A line without any active time is deleted. */
function deriveEndChanges(
  end: LineChangeEnd,
  { anchor, subscription, retained }: LineChangePlan,
): Partial<SubscriptionLineItemModel> {
  const { line_item, id } = end.item;
  const stays = retained.find(({ item_id, payers }) => item_id === id && payers.includes(id));
  return {
    end_date: formatMs(end.at),
    ends_with_price: false,
    ...(end.at <= toInstant(line_item.start_date) ? { status: 'deleted' as const } : {}),
    ...(stays ? { charged_until: formatMs(stays.until) } : {}),
    ...deriveAnchorChanges(anchor, end.item, subscription),
  };
}

/** Derives the anchor of a line. If a new period begins, lines that were charged in the old periods retain these periods. */
function deriveAnchorChanges(
  anchor: string | null,
  item: BillableItem,
  subscription: SubscriptionModel,
): Partial<SubscriptionLineItemModel> {
  if (anchor === null) return {};
  const isOfSubscription = !hasOwnPeriods(item, toBilledSubscription(subscription));
  return { period_anchor: isOfSubscription ? anchor : formatMs(item.anchor_ms ?? item.start_ms) };
}

async function addLines(
  transaction: Transaction,
  subscription: SubscriptionModel,
  begins: readonly BillableItem[],
): Promise<SubscriptionLineItemModel[]> {
  if (begins.length === 0) return [];
  const [last] = await SubscriptionLineItemModel.in(subscription, transaction)
    .select('position')
    .where({ subscription_id: subscription.id })
    .whereNotNull('position')
    .orderBy('position', 'desc')
    .limit(1);
  const first = (last?.position ?? -1) + 1;
  const records = begins.map(({ line_item }, index) => ({ ...line_item, position: first + index }));
  return SubscriptionLineItemModel.addAll(subscription, records, { database: transaction });
}
