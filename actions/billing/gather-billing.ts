/**
 * Gathers what an invoice is planned from: the subscription's line items with prices and meters, what stands on other
 * invoices, and the usage; then asks core what the invoice should say. Preview, draft and recomputation all come through
 * here, so that they cannot disagree (docs/rules/invoices.md, "Preview and invoice agree").
 */
import type { ReferencePoint } from '../../core/billing/charges.ts';
import type { MeasuredUsage } from '../../core/billing/line-amount.ts';
import { chargeKey, type InvoicePlan, openCharges, planInvoice } from '../../core/billing/plan-invoice.ts';
import { instantOf, type Milliseconds } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { mapConcurrently } from '../../storage/together.ts';
import { inSpan, inSyncSpan } from '../../tracing/spans.ts';
import { type BillableItem, billedSubscription, CHARGES_AT_ONCE, gatherItems, usageReader } from './billable-items.ts';
import { gatherClosedCharges, gatherInvoicedLines, type InvoicedLine } from './gather-closed-charges.ts';

export type BillingTarget = {
  readonly subscription: SubscriptionModel;
  readonly period: Period;
  readonly reference: ReferencePoint;
  /** The invoice that is computed anew: its own lines do not count as invoiced elsewhere. */
  readonly invoice_id?: string;
  readonly now: Date;
};

export type Planned = {
  readonly plan: InvoicePlan<BillableItem>;
  /** Every event before this instant is in the usage; null when no usage was read. */
  readonly usage_as_of_ms: Milliseconds | null;
};

/**
 * A draft that corrects an earlier charge is computed anew before it is final, and finds then what the earlier invoice says:
 * it keeps no charge from an invoice that was skipped and is computed again with the events that came late.
 */
function isOpenCorrection({ line, invoice_status }: InvoicedLine): boolean {
  return invoice_status === 'DRAFT' && Boolean(line.parent_line_item_id);
}

/** `database` is the transaction that will write the plan, or the pool for a preview. */
export function planFromStores(stores: Stores, database: Database, target: BillingTarget): Promise<Planned> {
  return inSpan('invoice.plan', {}, () => gatherAndPlan(stores, database, target));
}

async function gatherAndPlan(stores: Stores, database: Database, target: BillingTarget): Promise<Planned> {
  const { subscription, period, reference } = target;
  const items = await gatherItems(database, subscription);
  const lines = await gatherInvoicedLines(database, subscription, target.invoice_id);
  const question = {
    subscription: billedSubscription(subscription),
    items,
    period,
    reference,
    invoiced: new Set(lines.filter((line) => !isOpenCorrection(line)).map((line) => line.key)),
  };
  const measure = await usageReader(stores, database, subscription, { now: target.now });
  const usage = new Map<string, MeasuredUsage>();
  let usage_as_of_ms: Milliseconds | null = null;
  await mapConcurrently(CHARGES_AT_ONCE, openCharges(question), async ({ item, service, usage_window }) => {
    if (usage_window === null) return;
    const measured = await measure(item, usage_window);
    usage.set(chargeKey(item.id, service), measured);
    usage_as_of_ms = Math.min(usage_as_of_ms ?? Number.POSITIVE_INFINITY, instantOf(measured.as_of));
  });
  const closed =
    reference === 'period_start'
      ? []
      : await gatherClosedCharges(database, { lines, items, before: period.end }, measure);
  const plan = inSyncSpan('invoice.price', () =>
    planInvoice({ ...question, currency: subscription.currency, usage, closed }),
  );
  return { plan, usage_as_of_ms };
}
