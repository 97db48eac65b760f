/**
 * Discounts, prepaid credits and taxes of an invoice line (docs/rules/invoices.md, "Totals"). Each field is declared only here: records,
 * stored columns, credit shares and sums are built from these lists. line-adjustments.ts computes the amounts.
 */
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { decimalText } from '../foundation/record.ts';

/** Adjustments of an invoice line. A line that credits a charge has the negative share of each amount. */
export const adjustmentShape = {
  prepaid_credits_applied: decimalText.meta({
    description: 'Amount that prepaid credits paid before taxes. Negative for a line that credits a charge.',
  }),
  line_item_discount: decimalText.meta({ description: 'Discount by coupons of the line.' }),
  invoice_level_discount: decimalText.meta({ description: 'Share of the discount by coupons of the invoice.' }),
};

/** Sums of `taxes`, by `tax_behavior`. */
export const taxAmountShape = {
  tax_amount: decimalText.meta({ description: 'Share of the tax that is added to the invoice.' }),
  included_tax_amount: decimalText.meta({ description: 'Share of the tax that the amounts include already.' }),
};

export type LineAdjustmentField = keyof typeof adjustmentShape;
type TaxAmountField = keyof typeof taxAmountShape;

export const ADJUSTMENT_FIELDS = Object.keys(adjustmentShape) as readonly LineAdjustmentField[];
const TAX_AMOUNT_FIELDS = Object.keys(taxAmountShape) as readonly TaxAmountField[];

/** Discounts of a line. They lower the taxable amount, and finalization does not compute them again. */
export const DISCOUNT_FIELDS = [
  'line_item_discount',
  'invoice_level_discount',
] as const satisfies LineAdjustmentField[];

/** Adjustments that finalization computes again. */
export const FINAL_FIELDS: readonly (LineAdjustmentField | TaxAmountField)[] = [
  ...TAX_AMOUNT_FIELDS,
  ...ADJUSTMENT_FIELDS.filter((field) => !(DISCOUNT_FIELDS as readonly string[]).includes(field)),
];

type DiscountField = (typeof DISCOUNT_FIELDS)[number];
/** Amounts as decimals or as their text. */
type DiscountValues = { readonly [Field in DiscountField]: Decimal | string };
export type AdjustmentValues = { readonly [Field in LineAdjustmentField]: Decimal | string };
export type AdjustmentAmounts = { readonly [Field in LineAdjustmentField]: Decimal };

export function buildAdjustments<Value>(
  toValue: (field: LineAdjustmentField) => Value,
): Record<LineAdjustmentField, Value> {
  return Object.fromEntries(ADJUSTMENT_FIELDS.map((field) => [field, toValue(field)])) as Record<
    LineAdjustmentField,
    Value
  >;
}

/** Parses the adjustments of a line. An absent amount is 0. */
export function parseAdjustments(line: Partial<AdjustmentValues>): AdjustmentAmounts {
  return buildAdjustments((field) => new Decimal(line[field] ?? ZERO));
}

export function formatAdjustments(amounts: AdjustmentAmounts): Record<LineAdjustmentField, string> {
  return buildAdjustments((field) => amounts[field].toFixed());
}

export function omitAdjustments<Line extends object>(line: Line): Omit<Line, LineAdjustmentField> {
  const others = Object.entries(line).filter(([field]) => !Object.hasOwn(adjustmentShape, field));
  return Object.fromEntries(others) as Omit<Line, LineAdjustmentField>;
}

export function sumDiscounts(line: DiscountValues): Decimal {
  return sumDecimals(DISCOUNT_FIELDS.map((field) => new Decimal(line[field])));
}

/** The amount that is taxed, unless prepaid credits paid a part of it. */
export function computeDiscountedAmount(line: DiscountValues & { readonly amount: Decimal | string }): Decimal {
  return new Decimal(line.amount).minus(sumDiscounts(line));
}

/** The part of the line's amount that is paid with money, before taxes. */
export function computeLineNet(line: AdjustmentValues & { readonly amount: Decimal | string }): Decimal {
  return ADJUSTMENT_FIELDS.reduce((net, field) => net.minus(line[field]), new Decimal(line.amount));
}

/** True if discounts or taxes change the amount of the line. */
export function isDiscountedOrTaxed(
  line: DiscountValues & { readonly [Field in TaxAmountField]: Decimal | string },
): boolean {
  return [...DISCOUNT_FIELDS, ...TAX_AMOUNT_FIELDS].some((field) => !new Decimal(line[field]).isZero());
}
