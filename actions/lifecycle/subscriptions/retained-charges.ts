/**
 * Advance charges that remain because a change is not prorated: they pay for the replacing lines until the next period
 * (docs/rules/proration.md, "Without proration"). A final invoice and a draft are treated alike. A later change with
 * proration credits the part that such a charge has not served.
 */

import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { computeChargedUntil, nextWholePeriod } from '../../../core/rating/change.ts';
import type { BilledSubscription } from '../../../core/rating/charges.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { filterFinalLines, type InvoicedLine } from '../../invoicing/billing/gather-closed-charges.ts';
import { type BillableItem, requireRecord, toBillableItem } from '../../rating/billable-items.ts';

export type LineChangeEnd = { readonly item: BillableItem; readonly at: Milliseconds };

type ChargedRunningPeriod = { readonly subscription: BilledSubscription; readonly current: Period };

/**
 * Prepaid time after the end of a line that ends without proration: `until` is its end, and `payers` are the lines
 * whose charges pay for it.
 */
export type RetainedCharge = {
  readonly item_id: string;
  readonly until: Milliseconds;
  readonly payers: readonly string[];
};

export function computeRetainedCharge(
  { item, at }: LineChangeEnd,
  invoiced: readonly InvoicedLine[],
  running: ChargedRunningPeriod,
): RetainedCharge | null {
  const { id, start_date, charged_from, paid_by_lines } = item.line_item;
  const isBilled = filterFinalLines(invoiced, id).length > 0;
  // A line without any active time is deleted, and no draft charges it.
  const isCharged = at > toInstant(start_date) || isBilled;
  // A scheduled cancellation is ignored: the line was charged before it was scheduled, and the cancellation can be undone.
  const uncut = { ...running, subscription: { ...running.subscription, end_ms: null } };
  const until = isCharged ? computeChargedUntil(item, at, uncut) : null;
  // An advance charge pays until the end of the time that it covers, even if another line took over most of that time.
  if (until !== null) return { item_id: id, until, payers: [id] };
  const paid = charged_from ? toInstant(charged_from) : at;
  return paid > at ? { item_id: id, until: paid, payers: paid_by_lines ?? [] } : null;
}

/**
 * Computes the start of the charge of a line that begins without proration, because retained charges pay for the time before. Null means
 * the start of the line.
 */
export function computeChargedFrom(
  item: BillableItem,
  retained: readonly RetainedCharge[],
  {
    follows,
    running,
    restarts,
  }: { follows: BillableItem | undefined; running: ChargedRunningPeriod; restarts: boolean },
): Milliseconds | null {
  if (follows) return retained.find(({ item_id }) => item_id === follows.id)?.until ?? null;
  const { current } = running;
  // A retained charge for the running period also pays for a line that begins with that period. A new period that begins with the change is
  // not paid for by any retained charge.
  const isPaid = !restarts && retained.some(({ payers }) => payers.length > 0) && item.start_ms === current.start;
  return nextWholePeriod(item, running) ?? (isPaid ? current.end : null);
}

/** Loads the lines whose retained charges pay for an ending line. Only a line that ends before its own charge begins has such payers. */
export async function gatherPayers(
  database: Database,
  subscription: SubscriptionModel,
  ends: readonly LineChangeEnd[],
): Promise<LineChangeEnd[]> {
  const paid = ends.flatMap(({ item, at }) => {
    const { charged_from, paid_by_lines } = item.line_item;
    const isPaid = charged_from && toInstant(charged_from) > at;
    return isPaid ? (paid_by_lines ?? []).map((payer) => ({ payer, at })) : [];
  });
  if (paid.length === 0) return [];
  const ids = paid.map(({ payer }) => payer);
  const records = await SubscriptionLineItemModel.byId(subscription, ids, database);
  const priceIds = Array.from(records.values(), ({ price_id }) => price_id);
  const prices = await PriceModel.byId(subscription, priceIds, database);
  return paid.map(({ payer, at }) => {
    const record = requireRecord(records, payer, 'line item');
    const price = requireRecord(prices, record.price_id, 'price');
    return { item: toBillableItem(record, { price, meter: null, subscription }), at };
  });
}

type BegunLineRecord = {
  readonly record: SubscriptionLineItemModel;
  readonly follows: BillableItem | undefined;
};

/**
 * Records for each line that is charged later which lines pay for it until then: the line that it follows, or the ending lines of the old
 * plan.
 */
export function notePayers(begun: readonly BegunLineRecord[], retained: readonly RetainedCharge[]): void {
  const later = begun.filter(({ record }) => record.charged_from);
  const others = later.filter(({ follows }) => !follows);
  for (const { record, follows } of later)
    if (follows) record.paid_by_lines = listPayers(retained.filter(({ item_id }) => item_id === follows.id));
  for (const [place, payer] of listPayers(retained).entries()) {
    const record = others[Math.min(place, others.length - 1)]?.record;
    if (record) record.paid_by_lines = [...(record.paid_by_lines ?? []), payer];
  }
}

function listPayers(retained: readonly RetainedCharge[]): string[] {
  return retained.flatMap(({ payers }) => payers);
}
