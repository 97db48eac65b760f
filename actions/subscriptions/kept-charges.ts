/**
 * What was charged in advance and is left without proration stays charged, and pays for what comes in its place until the next
 * period (docs/rules/proration.md, "Without proration"). Whether its invoice is final or still a draft makes no difference. A
 * later change that prorates gives back what such a charge has not served.
 */
import { computeChargedUntil, nextWholePeriod } from '../../core/billing/change.ts';
import type { BilledSubscription } from '../../core/billing/charges.ts';
import { type Milliseconds, toInstant } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { PriceModel } from '../../storage/models/price.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import type { Database } from '../../storage/stores.ts';
import { type BillableItem, billableItem, found } from '../billing/billable-items.ts';
import type { InvoicedLine } from '../billing/gather-closed-charges.ts';

export type LineEnd = { readonly item: BillableItem; readonly at: Milliseconds };

type Running = { readonly subscription: BilledSubscription; readonly current: Period };

/** Of a line that ends without proration: until when its time is paid for, and by the charges of which lines. */
export type KeptCharge = { readonly item_id: string; readonly until: Milliseconds; readonly payers: readonly string[] };

export function keptCharge(
  { item, at }: LineEnd,
  invoiced: readonly InvoicedLine[],
  running: Running,
): KeptCharge | null {
  const { id, start_date, charged_from, paid_by_lines } = item.record;
  const isBilled = invoiced.some(
    ({ line, invoice_status }) => line.subscription_line_item_id === id && invoice_status !== 'DRAFT',
  );
  // A line that is taken out, because it would have lived no time, stands on no draft.
  const isCharged = at > toInstant(start_date) || isBilled;
  // As it was charged: a cancellation that was scheduled since can be undone.
  const uncut = { ...running, subscription: { ...running.subscription, end_ms: null } };
  const until = isCharged ? computeChargedUntil(item, at, uncut) : null;
  // What is paid by lines before it stays so, however short it lived itself.
  if (until !== null) return { item_id: id, until, payers: [id] };
  const paid = charged_from ? toInstant(charged_from) : at;
  return paid > at ? { item_id: id, until: paid, payers: paid_by_lines ?? [] } : null;
}

/** From when on a line is charged that begins without proration, and who pays for the time before; null where from its start. */
export function chargedFrom(
  item: BillableItem,
  kept: readonly KeptCharge[],
  { follows, running, restarts }: { follows: BillableItem | undefined; running: Running; restarts: boolean },
): Milliseconds | null {
  if (follows) return kept.find(({ item_id }) => item_id === follows.id)?.until ?? null;
  const { current } = running;
  // What was charged for all of the period pays for what begins with it, too; where a new one begins, nothing was.
  const isPaid = !restarts && kept.some(({ payers }) => payers.length > 0) && item.start_ms === current.start;
  return nextWholePeriod(item, running) ?? (isPaid ? current.end : null);
}

/** The lines whose charges pay for what a line has served at an instant before it is charged itself, as they are charged. */
export async function gatherPayers(
  database: Database,
  subscription: SubscriptionModel,
  ends: readonly LineEnd[],
): Promise<LineEnd[]> {
  const paid = ends.flatMap(({ item, at }) => {
    const { charged_from, paid_by_lines } = item.record;
    const isPaid = charged_from && toInstant(charged_from) > at;
    return isPaid ? (paid_by_lines ?? []).map((payer) => ({ payer, at })) : [];
  });
  if (paid.length === 0) return [];
  const ids = paid.map(({ payer }) => payer);
  const records = await SubscriptionLineItemModel.byId(subscription, ids, database);
  const priceIds = Array.from(records.values(), ({ price_id }) => price_id);
  const prices = await PriceModel.byId(subscription, priceIds, database);
  return paid.map(({ payer, at }) => {
    const record = found(records, payer, 'line item');
    const price = found(prices, record.price_id, 'price');
    return { item: billableItem(record, { price, meter: null, subscription }), at };
  });
}

export type BegunLine = { readonly record: SubscriptionLineItemModel; readonly follows: BillableItem | undefined };

/** Says of each line that is charged later who pays until then: the line that it follows, or, of another plan, those that end. */
export function notePayers(begun: readonly BegunLine[], kept: readonly KeptCharge[]): void {
  const later = begun.filter(({ record }) => record.charged_from);
  const others = later.filter(({ follows }) => !follows);
  for (const { record, follows } of later)
    if (follows) record.paid_by_lines = payersOf(kept.filter(({ item_id }) => item_id === follows.id));
  for (const [place, payer] of payersOf(kept).entries()) {
    const record = others[Math.min(place, others.length - 1)]?.record;
    if (record) record.paid_by_lines = [...(record.paid_by_lines ?? []), payer];
  }
}

function payersOf(kept: readonly KeptCharge[]): string[] {
  return kept.flatMap(({ payers }) => payers);
}
