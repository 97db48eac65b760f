/**
 * What stands on a subscription's other invoices, and which of its final usage charges have met new or corrected events
 * since: the source of adjustment lines. A meter whose definition has changed since is not asked again: what it counts of
 * the past is never billed to a closed period (docs/rules/invoices.md, "Late events").
 */
import { type ClosedCharge, expectedEventCount } from '../../core/billing/late-events.ts';
import { chargeKey } from '../../core/billing/plan-invoice.ts';
import { Decimal, sumOf } from '../../core/decimal.ts';
import type { InvoiceStatus } from '../../core/invoice/record.ts';
import { instantOf } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { InvoiceLineItemModel } from '../../storage/models/invoice-line-item.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { hasCorrectionsSince } from '../../storage/progress/corrections.ts';
import type { Database } from '../../storage/stores.ts';
import type { BillableItem, Measure } from './billable-items.ts';

export type InvoicedLine = {
  readonly key: string;
  readonly service: Period;
  readonly line: InvoiceLineItemModel;
  readonly invoice_status: InvoiceStatus;
};

/** Every line of the subscription on an invoice that is neither void nor the one being computed, oldest first. */
export async function gatherInvoicedLines(
  database: Database,
  subscription: SubscriptionModel,
  exceptInvoiceId?: string,
): Promise<InvoicedLine[]> {
  const invoices = await InvoiceModel.in(subscription, database)
    .where({ subscription_id: subscription.id, status: 'published' })
    .whereNot('invoice_status', 'VOIDED')
    .whereNot('id', exceptInvoiceId ?? '');
  const statusById = new Map(invoices.map((invoice) => [invoice.id, invoice.invoice_status]));
  const lines = await InvoiceLineItemModel.in(subscription, database)
    .whereIn('invoice_id', [...statusById.keys()])
    .where('status', 'published')
    .whereNotNull('subscription_line_item_id')
    .orderBy(['created_at', 'invoice_id', 'position', 'id']);
  return lines.map((line) => {
    const service = { start: instantOf(line.period_start ?? ''), end: instantOf(line.period_end ?? '') };
    const key = chargeKey(line.subscription_line_item_id ?? '', service);
    return { key, service, line, invoice_status: statusById.get(line.invoice_id)! };
  });
}

/**
 * Of services that ended by `before`, the end of the period that is being invoiced: what came late for a later period is a line
 * on an invoice behind that one, and never on one of an earlier period that is computed again.
 */
export async function gatherClosedCharges(
  database: Database,
  { lines, items, before }: { lines: readonly InvoicedLine[]; items: readonly BillableItem[]; before: number },
  measure: Measure,
): Promise<ClosedCharge<BillableItem>[]> {
  const closed: ClosedCharge<BillableItem>[] = [];
  const corrected = await isCorrected(database, lines);
  for (const item of items) {
    if (item.price_type !== 'USAGE') continue;
    const recorded = recordedCharges(item, lines).filter(({ service }) => service.end <= before);
    if (!corrected && !(await hasGrown(item, recorded, measure))) continue;
    for (const charge of recorded) {
      const measured = await measure(item, charge.usage_window);
      if (corrected || measured.event_count !== charge.billed_event_count) closed.push({ ...charge, measured });
    }
  }
  return closed;
}

type RecordedCharge = Omit<ClosedCharge<BillableItem>, 'measured'>;

/** One per service period: what was billed for it in all, and what the newest line says was counted. */
function recordedCharges(item: BillableItem, lines: readonly InvoicedLine[]): RecordedCharge[] {
  const groups = new Map<string, InvoicedLine[]>();
  for (const invoiced of lines) {
    if (invoiced.line.subscription_line_item_id !== item.id) continue;
    groups.set(invoiced.key, [...(groups.get(invoiced.key) ?? []), invoiced]);
  }
  return [...groups.values()].flatMap((group) => recordedCharge(item, group) ?? []);
}

function recordedCharge(item: BillableItem, group: readonly InvoicedLine[]): RecordedCharge | undefined {
  const first = group[0]!;
  const newest = group.at(-1)!.line.computed_from;
  // A draft is computed anew before it becomes final: it takes its late events in by itself.
  if (first.invoice_status === 'DRAFT' || first.line.price_type !== 'USAGE') return undefined;
  if (!newest?.window_start || !newest.window_end || newest.meter_version !== String(item.meter?.version))
    return undefined;
  return {
    item,
    service: first.service,
    usage_window: { start: instantOf(newest.window_start), end: instantOf(newest.window_end) },
    billed_amount: sumOf(group.map(({ line }) => new Decimal(line.amount))),
    billed_quantity: sumOf(group.map(({ line }) => new Decimal(line.quantity))),
    billed_event_count: newest.event_count ?? 0,
    invoice_line_item_id: first.line.id,
  };
}

/** A voided or replaced event may leave the count as it was: after one, every charge is measured again. */
async function isCorrected(database: Database, lines: readonly InvoicedLine[]): Promise<boolean> {
  const final = lines.filter(({ invoice_status }) => invoice_status !== 'DRAFT');
  if (final.length === 0) return false;
  const since = Math.min(...final.map(({ line }) => instantOf(line.created_at)));
  return hasCorrectionsSince(database, final[0]!.line, new Date(since));
}

/** One read over all closed windows tells whether anything came late at all; most often nothing did. */
async function hasGrown(item: BillableItem, recorded: readonly RecordedCharge[], measure: Measure): Promise<boolean> {
  if (recorded.length <= 1) return recorded.length === 1;
  const windows = recorded.map((charge) => ({ window: charge.usage_window, event_count: charge.billed_event_count }));
  const expected = expectedEventCount(windows);
  if (expected === undefined) return true;
  const whole = {
    start: Math.min(...windows.map(({ window }) => window.start)),
    end: Math.max(...windows.map(({ window }) => window.end)),
  };
  return (await measure(item, whole)).event_count !== expected;
}
