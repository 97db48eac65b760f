/**
 * Converts a planned invoice to the records that are stored and returned: one shape for preview, draft and recomputation. A preview is not
 * stored and has empty ids.
 */

import { priceUnitFromFiat } from '../../../core/catalog/pricing/price-unit.ts';
import { sumTax, toLineTaxes } from '../../../core/catalog/tax/line-tax.ts';
import { MAX_FRACTION_DIGITS, roundMoney } from '../../../core/foundation/money.ts';
import { formatMs } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { toDraftKey } from '../../../core/invoicing/invoice/own-key.ts';
import type {
  BillingReason,
  Invoice,
  InvoiceLineItem,
  InvoiceWithLines,
} from '../../../core/invoicing/invoice/record.ts';
import { deriveDraftStatus } from '../../../core/invoicing/invoice/skipped.ts';
import { formatAdjustments } from '../../../core/rating/adjustment-fields.ts';
import type { LineAdjustments } from '../../../core/rating/credit-adjustments.ts';
import { toLineDiscounts } from '../../../core/rating/discounts.ts';
import type { PlannedLine } from '../../../core/rating/line-amount.ts';
import type { InvoicePlan } from '../../../core/rating/plan-invoice.ts';
import { formatQuantityFields } from '../../../core/rating/quantity-fields.ts';
import { totalsText } from '../../../core/rating/totals.ts';
import { deriveAddressee } from '../../../core/subscriptions/addressee.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { findLastBillingSequence, type InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { type BillableItem, toScope } from '../../rating/billable-items.ts';
import { applicationRecords } from './application-records.ts';
import { taxRecords } from './tax-records.ts';

type InvoiceDescription = {
  readonly subscription: SubscriptionModel;
  readonly period: Period;
  readonly reason: BillingReason;
  readonly plan: InvoicePlan<BillableItem>;
};

/** Builds a computed subscription invoice; skipped if its subtotal is 0 (docs/rules/invoices.md, "Nothing to pay"). */
export function toInvoiceRecord(description: InvoiceDescription, id: string, now: Date): Invoice {
  const { subscription, period, reason } = description;
  return {
    id,
    ...toScope(subscription),
    customer_id: deriveAddressee(subscription),
    subscription_id: subscription.id,
    subscription_customer_id: subscription.customer_id,
    invoice_type: 'SUBSCRIPTION',
    payment_status: 'PENDING',
    billing_reason: reason,
    currency: subscription.currency,
    ...toComputedFields(description.plan, { billing_reason: reason }, now),
    refunded_amount: '0',
    prepaid_credits_returned: '0',
    idempotency_key: toDraftKey({ subscription_id: subscription.id, period, reason }),
    billing_period: subscription.billing_period,
    period_start: formatMs(period.start),
    period_end: formatMs(period.end),
    is_manually_edited: false,
    metadata: null,
    version: 1,
    ...baseRecord(now),
  };
}

/** Fields that every computation of an invoice writes. */
export function toComputedFields(
  plan: InvoicePlan<BillableItem>,
  { billing_reason }: Pick<Invoice, 'billing_reason'>,
  now: Date,
) {
  const {
    lines: _lines,
    adjustments: _adjustments,
    coupons_applied: _coupons,
    taxes_applied: _taxes,
    ...totals
  } = plan;
  return {
    invoice_status: deriveDraftStatus({ invoice_type: 'SUBSCRIPTION', billing_reason }, totals),
    ...totalsText(totals),
    last_computed_at: now.toISOString(),
  };
}

/** Converts the lines in the order of the plan, stored in `position`. */
export function toLineRecords(
  plan: InvoicePlan<BillableItem>,
  invoice: Invoice,
  now: Date,
): (InvoiceLineItem & { position: number })[] {
  return plan.lines.map((line, position) => {
    const id = invoice.id === '' ? '' : newId('invoice_line_item', now.getTime());
    return { id, position, ...toLineRecord(line, invoice, now), ...formatLineAdjustments(plan.adjustments[position]!) };
  });
}

/** Returns the parts of a planned invoice: its lines, coupon discounts and taxes. */
export function toInvoiceParts(plan: InvoicePlan<BillableItem>, invoice: Invoice, now: Date) {
  const author = { user_id: '', now };
  const lines = toLineRecords(plan, invoice, now);
  const line_ids = lines.map(({ id }) => id);
  return {
    lines,
    coupon_applications: applicationRecords(plan.coupons_applied, { invoice, line_ids, author }),
    taxes: taxRecords(plan.taxes_applied, { invoice, line_items: lines, author }),
  };
}

/** Formats the discounts, credits and taxes of a line. */
export function formatLineAdjustments({ taxes, shares, ...amounts }: LineAdjustments) {
  return {
    discounts: toLineDiscounts(shares),
    ...formatAdjustments(amounts),
    tax_amount: sumTax(taxes, 'exclusive').toFixed(),
    included_tax_amount: sumTax(taxes, 'inclusive').toFixed(),
    taxes: toLineTaxes(taxes),
  };
}

type UnadjustedLine = Omit<InvoiceLineItem, 'id' | keyof ReturnType<typeof formatLineAdjustments>>;

function toLineRecord(line: PlannedLine<BillableItem>, invoice: Invoice, now: Date): UnadjustedLine {
  const { line_item, price, meter } = line.item;
  if (line.is_true_up) return toTrueUpRecord(line, invoice, now);
  return {
    tenant_id: invoice.tenant_id,
    environment_id: invoice.environment_id,
    invoice_id: invoice.id,
    customer_id: invoice.customer_id,
    subscription_id: line_item.subscription_id,
    subscription_line_item_id: line_item.id,
    parent_line_item_id: line.parent_line_item_id,
    entity_id: line_item.entity_id,
    entity_type: line_item.entity_type,
    plan_display_name: line_item.plan_display_name,
    price_id: line_item.price_id,
    price_type: line_item.price_type,
    meter_id: meter?.id ?? null,
    meter_display_name: line_item.meter_display_name ?? meter?.name ?? null,
    price_unit_id: price.price_unit_id,
    price_unit: price.price_unit,
    price_unit_amount: priceUnitAmount(line),
    display_name: line.display_name,
    quantity: line.quantity.toFixed(),
    amount: line.amount.toFixed(),
    currency: invoice.currency,
    period_start: formatMs(line.service.start),
    period_end: formatMs(line.service.end),
    ...formatQuantityFields(line),
    commitment_info: line.commitment_info ?? null,
    metadata: null,
    computed_from: line.computed_from,
    ...baseRecord(now),
  };
}

/** Builds the line of a true-up. The true-up of a subscription's commitment belongs to no line item. */
function toTrueUpRecord(line: PlannedLine<BillableItem>, invoice: Invoice, now: Date): UnadjustedLine {
  const own = toLineRecord({ ...line, is_true_up: false }, invoice, now);
  return {
    ...own,
    subscription_line_item_id: null,
    entity_id: line.item.line_item.subscription_id,
    entity_type: 'subscription',
    plan_display_name: null,
    price_id: null,
    price_type: 'FIXED',
    meter_id: null,
    meter_display_name: null,
    price_unit_id: null,
    price_unit: null,
    price_unit_amount: null,
  };
}

/**
 * Returns the amount in the custom price unit, if the price has one, before the amount in money is rounded. The customer owes the amount in
 * money.
 */
function priceUnitAmount({ item, amount, exact }: PlannedLine<BillableItem>): string | null {
  const { conversion_rate: rate, currency } = item.price;
  if (rate === null || rate === undefined) return null;
  const isRounded = exact !== undefined && roundMoney(exact, currency).eq(amount);
  return priceUnitFromFiat(isRounded ? exact : amount, rate)
    .toDecimalPlaces(MAX_FRACTION_DIGITS)
    .toFixed();
}

function baseRecord(now: Date) {
  const at = now.toISOString();
  return { status: 'published' as const, created_at: at, updated_at: at, created_by: '', updated_by: '' };
}

export async function loadWithLines(invoice: InvoiceModel, database: Database): Promise<InvoiceWithLines> {
  return Object.assign(invoice, { line_items: await loadInvoiceLines(invoice, database) });
}

export function loadInvoiceLines(invoice: InvoiceModel, database: Database): Promise<InvoiceLineItemModel[]> {
  const filter = { column: 'invoice_id', value: invoice.id, where: { status: 'published' } };
  const order = ['position', 'created_at', 'id'];
  return InvoiceLineItemModel.listBy(invoice, { ...filter, order }, database);
}

/** Returns the next number of an invoice of the subscription: 1, 2, 3 and so on. The caller has locked the subscription. */
export async function loadNextBillingSequence(subscription: SubscriptionModel, database: Database): Promise<number> {
  return (await findLastBillingSequence(subscription, subscription.id, database)) + 1;
}
