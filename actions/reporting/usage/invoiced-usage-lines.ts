/**
 * Known charges for the usage export: lines of invoices that are not void; lines of progressive billing are listed separately. Charges that
 * are on no invoice yet and depend on other charges come from the preview.
 */

import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { ceilToMs, formatMs, type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { InvoiceStatus } from '../../../core/invoicing/invoice/record.ts';
import { deriveDrawPeriod } from '../../../core/rating/commitments/part.ts';
import type { ComputedFrom } from '../../../core/rating/computed-from.ts';
import { chargeKey } from '../../../core/rating/plan-invoice.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { subscriptionCommitment } from '../../invoicing/billing/gather-commitments.ts';
import { type PlannedInvoice, planRunningInvoice } from '../../invoicing/billing/plan-invoices.ts';
import { currentPeriodUntilEnd, toBilledSubscription } from '../../rating/billable-items.ts';
import type { AnalyticsItem } from './analytics-items.ts';
import { listPeriodAllowances } from './measure-cuts.ts';

export type InvoicedUsageLine = {
  readonly quantity: string;
  readonly amount: string;
  readonly display_name: string | null;
  readonly plan_display_name: string | null;
  readonly computed_from: ComputedFrom | null;
  readonly service: Period;
  /** Null if the line is on no invoice yet; a draft has no number yet. */
  readonly invoice: { readonly id: string; readonly number: string | null; readonly status: InvoiceStatus } | null;
};

export type InvoicedUsageLines = {
  /** Lines by `chargeKey`, oldest first: a charge's own lines, then its corrections. */
  readonly byCharge: ReadonlyMap<string, readonly InvoicedUsageLine[]>;
  /** Lines of progressive billing by line item, oldest first. */
  readonly partial: ReadonlyMap<string, readonly InvoicedUsageLine[]>;
};

/** Loads the lines of invoiced usage. `since`: start of the first charge that overlaps the range. */
export async function loadInvoicedUsageLines(
  database: Database,
  scope: Scope,
  { items, since, end_us }: { items: readonly AnalyticsItem[]; since: Milliseconds; end_us: number },
): Promise<InvoicedUsageLines> {
  const lines = await InvoiceLineItemModel.in(scope, database)
    .whereIn('subscription_line_item_id', [...new Set(items.map(({ id }) => id))])
    .where({ status: 'published', price_type: 'USAGE' })
    .where('period_start', '<', formatMs(ceilToMs(end_us)))
    .where('period_end', '>', formatMs(since))
    .orderBy(['created_at', 'invoice_id', 'position', 'id']);
  const invoices = await InvoiceModel.in(scope, database)
    .whereIn('id', [...new Set(lines.map(({ invoice_id }) => invoice_id))])
    .where('status', 'published')
    .whereNot('invoice_status', 'VOIDED');
  const byId = new Map(invoices.map((invoice) => [invoice.id, invoice]));
  const invoiced = lines.flatMap((record) => {
    const invoice = byId.get(record.invoice_id);
    return invoice ? [{ record, invoice, line: toInvoicedLine(record, invoice) }] : [];
  });
  const [partial, whole] = [invoiced.filter(isPartial), invoiced.filter((one) => !isPartial(one))];
  // A charge that was recomputed is newer than its corrections, so the order of creation cannot be used.
  const [own, corrections] = [whole.filter(isOwn), whole.filter((one) => !isOwn(one))];
  const toChargeKey = ({ record, line }: FoundInvoiceLine) =>
    chargeKey(record.subscription_line_item_id!, line.service);
  return {
    byCharge: groupLines([...own, ...corrections], toChargeKey),
    partial: groupLines(partial, ({ record }) => record.subscription_line_item_id!),
  };
}

type FoundInvoiceLine = {
  readonly record: InvoiceLineItemModel;
  readonly invoice: InvoiceModel;
  readonly line: InvoicedUsageLine;
};

function isPartial({ record, invoice }: FoundInvoiceLine): boolean {
  return invoice.billing_reason === 'THRESHOLD_BILLING' && !record.parent_line_item_id;
}

function isOwn({ record }: FoundInvoiceLine): boolean {
  return !record.parent_line_item_id;
}

function groupLines(
  found: readonly FoundInvoiceLine[],
  toKey: (one: FoundInvoiceLine) => string,
): Map<string, InvoicedUsageLine[]> {
  return new Map(Array.from(groupBy(found, toKey), ([key, of]) => [key, of.map(({ line }) => line)]));
}

function toInvoicedLine(record: InvoiceLineItemModel, invoice: InvoiceModel): InvoicedUsageLine {
  const { quantity, amount, display_name = null, plan_display_name = null, computed_from = null } = record;
  const { id, invoice_number, invoice_status: status } = invoice;
  return {
    quantity,
    amount,
    display_name,
    plan_display_name,
    computed_from,
    service: { start: toInstant(record.period_start!), end: toInstant(record.period_end!) },
    invoice: { id, number: invoice_number ?? null, status },
  };
}

type StartedService = { readonly item: AnalyticsItem; readonly period: Period };

const PREVIEWS_AT_ONCE = 4;

/**
 * Returns preview lines by `chargeKey`, for charges of running periods whose price depends on other charges. The dependency is progressive
 * billing, a limit whose reset period began before the charge, or a commitment that several charges share.
 */
export async function planPreviewedLines(
  stores: Stores,
  { services, invoiced, now }: { services: readonly StartedService[]; invoiced: InvoicedUsageLines; now: Date },
): Promise<Map<string, InvoicedUsageLine[]>> {
  const open = services.filter((one) => isOpen(one, invoiced) && !standsAlone(one, invoiced));
  const lines = new Map<string, InvoicedUsageLine[]>();
  const subscriptions = [...groupBy(open, ({ item }) => item.subscription.id).values()];
  await mapConcurrently(PREVIEWS_AT_ONCE, subscriptions, async ([{ item }]) => {
    const { subscription } = item;
    const period = currentPeriodUntilEnd(subscription);
    const { plan } = await planRunningInvoice(stores, stores.postgres, { subscription, period, now });
    for (const line of plan.lines) {
      if (line.item.price_type !== 'USAGE' || line.parent_line_item_id || line.is_true_up) continue;
      const key = chargeKey(line.item.id, line.service);
      lines.set(key, [...(lines.get(key) ?? []), toPreviewedLine(line)]);
    }
  });
  return lines;
}

type PreviewLine = PlannedInvoice['plan']['lines'][number];

function toPreviewedLine({
  quantity,
  amount,
  display_name,
  item,
  computed_from,
  service,
}: PreviewLine): InvoicedUsageLine {
  return {
    quantity: quantity.toFixed(),
    amount: amount.toFixed(),
    display_name,
    plan_display_name: item.line_item.plan_display_name ?? null,
    computed_from,
    service,
    invoice: null,
  };
}

/** Whether the next invoice will contain the charge. */
function isOpen({ item, period }: StartedService, { byCharge }: InvoicedUsageLines): boolean {
  const { subscription } = item;
  if (subscription.subscription_status !== 'active' || subscription.opens_at) return false;
  const { start, end } = currentPeriodUntilEnd(subscription);
  return period.end > start && period.end <= end && !byCharge.has(chargeKey(item.id, period));
}

function standsAlone({ item, period }: StartedService, { partial }: InvoicedUsageLines): boolean {
  const subscription = toBilledSubscription(item.subscription);
  const isInvoiced = partial.get(item.id)?.some(({ service }) => service.start >= period.start);
  const isLimitedAlone = listPeriodAllowances(item).length === (item.allowances ?? []).length;
  return (
    !isInvoiced &&
    !deriveDrawPeriod(item, period, { subscription }) &&
    isLimitedAlone &&
    !subscriptionCommitment(item.subscription)
  );
}
