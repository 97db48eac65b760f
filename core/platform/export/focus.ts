/**
 * Columns of invoice lines in FOCUS 1.2 (docs/rules/exports.md, "FOCUS"): what customers read beside the costs of their other providers. A
 * line is one charge, and further charges for the credits that paid it and for its tax.
 */
import { Decimal } from '../../foundation/decimal.ts';
import type { Invoice, InvoiceLineItem } from '../../invoicing/invoice/record.ts';
import { computeDiscountedAmount } from '../../rating/adjustment-fields.ts';
import { defineExportColumns } from './column.ts';
import { type ExportedInvoice, toExportMicroseconds } from './invoices.ts';

type ChargeCategory = 'Usage' | 'Purchase' | 'Credit' | 'Tax';

export type FocusCharge = {
  readonly seller: string;
  readonly invoice: Pick<Invoice, 'invoice_number' | 'period_start' | 'period_end' | 'finalized_at' | 'id'>;
  readonly customer: ExportedInvoice['customer'];
  readonly line: InvoiceLineItem;
  readonly category: ChargeCategory;
  readonly billed: string;
  /** Amount before discounts. */
  readonly list: string;
};

/** Charges of an invoice line. Their billed costs add up to its share of the total. */
export function listFocusCharges(
  line: InvoiceLineItem,
  of: Pick<FocusCharge, 'seller' | 'invoice' | 'customer'>,
): FocusCharge[] {
  const charge = (category: ChargeCategory, billed: Decimal, list = billed): FocusCharge => ({
    ...of,
    line,
    category,
    billed: billed.toFixed(),
    list: list.toFixed(),
  });
  const credits = new Decimal(line.prepaid_credits_applied).negated();
  const tax = new Decimal(line.tax_amount);
  return [
    charge(deriveCategory(line), computeDiscountedAmount(line), new Decimal(line.amount)),
    ...(credits.isZero() ? [] : [charge('Credit', credits)]),
    ...(tax.isZero() ? [] : [charge('Tax', tax)]),
  ];
}

/** A line below 0 returns a charge, unless it corrects usage. */
function deriveCategory({ price_type, parent_line_item_id, amount }: InvoiceLineItem): ChargeCategory {
  if (new Decimal(amount).isNegative() && !parent_line_item_id) return 'Credit';
  return price_type === 'USAGE' ? 'Usage' : 'Purchase';
}

const isPriced = ({ category }: FocusCharge) => category === 'Usage' || category === 'Purchase';

const UNIT = 'Units';
const UNIT_PRICE_DIGITS = 12;

/** Average price of a unit; null without units. */
function computeUnitPrice(charge: FocusCharge, cost: string): string | null {
  const { quantity } = charge.line;
  if (!isPriced(charge) || new Decimal(quantity).isZero()) return null;
  return new Decimal(cost).div(quantity).toDecimalPlaces(UNIT_PRICE_DIGITS).toFixed();
}

function deriveFrequency({ line, category }: FocusCharge): string {
  if (line.price_type === 'USAGE' && category !== 'Credit') return 'Usage-Based';
  return line.subscription_id ? 'Recurring' : 'One-Time';
}

const { text, word, decimal, instant } = defineExportColumns<FocusCharge>();
const absent = (name: string) => word(name, () => null);

export const FOCUS_COLUMNS = [
  absent('AvailabilityZone'),
  decimal('BilledCost', ({ billed }) => billed),
  text('BillingAccountId', ({ customer, line }) => customer?.external_id ?? line.customer_id),
  text('BillingAccountName', ({ customer }) => customer?.name ?? null),
  word('BillingCurrency', ({ line }) => line.currency.toUpperCase()),
  instant('BillingPeriodEnd', ({ invoice, line }) =>
    toExportMicroseconds(invoice.period_end ?? line.period_end ?? invoice.finalized_at),
  ),
  instant('BillingPeriodStart', ({ invoice, line }) =>
    toExportMicroseconds(invoice.period_start ?? line.period_start ?? invoice.finalized_at),
  ),
  word('ChargeCategory', ({ category }) => category),
  word('ChargeClass', ({ line }) => (line.parent_line_item_id ? 'Correction' : null)),
  text('ChargeDescription', ({ line }) => line.display_name ?? null),
  word('ChargeFrequency', deriveFrequency),
  instant('ChargePeriodEnd', ({ invoice, line }) =>
    toExportMicroseconds(line.period_end ?? invoice.period_end ?? invoice.finalized_at),
  ),
  instant('ChargePeriodStart', ({ invoice, line }) =>
    toExportMicroseconds(line.period_start ?? invoice.period_start ?? invoice.finalized_at),
  ),
  absent('CommitmentDiscountCategory'),
  absent('CommitmentDiscountId'),
  absent('CommitmentDiscountName'),
  absent('CommitmentDiscountStatus'),
  absent('CommitmentDiscountType'),
  decimal('ConsumedQuantity', ({ line, category }) => (category === 'Usage' ? line.quantity : null)),
  word('ConsumedUnit', ({ category }) => (category === 'Usage' ? UNIT : null)),
  decimal('ContractedCost', ({ billed }) => billed),
  decimal('ContractedUnitPrice', (charge) => computeUnitPrice(charge, charge.billed)),
  decimal('EffectiveCost', ({ billed }) => billed),
  word('InvoiceId', ({ invoice }) => invoice.id),
  text('InvoiceIssuerName', ({ seller }) => seller),
  decimal('ListCost', ({ list }) => list),
  decimal('ListUnitPrice', (charge) => computeUnitPrice(charge, charge.list)),
  word('PricingCategory', (charge) => (isPriced(charge) ? 'Standard' : null)),
  decimal('PricingQuantity', (charge) => (isPriced(charge) ? charge.line.quantity : null)),
  word('PricingUnit', (charge) => (isPriced(charge) ? UNIT : null)),
  text('ProviderName', ({ seller }) => seller),
  text('PublisherName', ({ seller }) => seller),
  absent('RegionId'),
  absent('RegionName'),
  absent('ResourceId'),
  absent('ResourceName'),
  absent('ResourceType'),
  word('ServiceCategory', () => 'Other'),
  text('ServiceName', ({ line }) => line.meter_display_name ?? line.plan_display_name ?? line.display_name ?? null),
  word('SkuId', ({ line }) => line.meter_id ?? line.entity_id ?? null),
  word('SkuPriceId', ({ line }) => line.price_id ?? null),
  word('SubAccountId', ({ line }) => line.subscription_id ?? null),
  text('SubAccountName', ({ line }) => (line.subscription_id ? (line.plan_display_name ?? null) : null)),
  text('Tags', ({ line }) => (line.metadata ? JSON.stringify(line.metadata) : null)),
  word('x_InvoiceLineItemId', ({ line }) => line.id),
  text('x_InvoiceNumber', ({ invoice }) => invoice.invoice_number ?? null),
];
