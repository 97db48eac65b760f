/**
 * A credit takes along a share of the discounts, the prepaid credits and the tax of the billed charge (docs/rules/invoices.md, "What is
 * given back"). The share is that of the credited amount, rounded, and never more than is left of them. A credit that exhausts the amount
 * takes all that is left.
 */

import { type LineTax, type TaxShare } from '../catalog/tax/line-tax.ts';
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { roundMoney } from '../foundation/money.ts';
import { type DiscountShare, type LineDiscount, mergeShares } from './discounts.ts';

export type LineAdjustments = {
  readonly line_item_discount: Decimal;
  readonly invoice_level_discount: Decimal;
  /** Discounts by coupon; absent if unknown. */
  readonly shares?: readonly DiscountShare[] | undefined;
  /** The share that prepaid credits paid: it returns to their lots, and only the rest is money. */
  readonly prepaid_credits_applied: Decimal;
  readonly taxes: readonly TaxShare[];
};
export type BilledTotal = LineAdjustments & { readonly amount: Decimal };

export type BilledLine = {
  readonly amount: string;
  readonly line_item_discount: string;
  readonly invoice_level_discount: string;
  readonly prepaid_credits_applied: string;
  readonly discounts?: readonly LineDiscount[] | null | undefined;
  readonly taxes?: readonly LineTax[] | null | undefined;
};

/** Sums up a line and its later credits, on top of `others`. */
export function sumBilledLines(lines: readonly BilledLine[], others?: BilledTotal): BilledTotal {
  const byRate = new Map(others?.taxes.map((share) => [`${share.tax_rate_id} ${share.tax_behavior}`, share]));
  for (const { taxes } of lines)
    for (const { tax_rate_id, tax_behavior, tax_amount } of taxes ?? []) {
      const key = `${tax_rate_id} ${tax_behavior}`;
      const before = byRate.get(key)?.tax_amount ?? ZERO;
      byRate.set(key, { tax_rate_id, tax_behavior, tax_amount: before.plus(tax_amount) });
    }
  const sum = (field: 'amount' | 'line_item_discount' | 'invoice_level_discount' | 'prepaid_credits_applied') =>
    sumDecimals([others?.[field] ?? ZERO, ...lines.map((line) => new Decimal(line[field]))]);
  return {
    amount: sum('amount'),
    line_item_discount: sum('line_item_discount'),
    invoice_level_discount: sum('invoice_level_discount'),
    prepaid_credits_applied: sum('prepaid_credits_applied'),
    shares: mergeDiscountShares(lines),
    taxes: [...byRate.values()],
  };
}

/** Undefined if a line was discounted and does not record its coupons. */
function mergeDiscountShares(lines: readonly BilledLine[]): DiscountShare[] | undefined {
  const isUnknown = ({ line_item_discount, invoice_level_discount, discounts }: BilledLine) =>
    !discounts && !new Decimal(line_item_discount).plus(invoice_level_discount).isZero();
  if (lines.some(isUnknown)) return undefined;
  const shares = lines.flatMap(({ discounts }) => discounts ?? []);
  return mergeShares(shares.map((share) => ({ ...share, discount_amount: new Decimal(share.discount_amount) })));
}

/** `credit` is not negative. The result has the signs of the crediting line: 0 or less. */
export function computeCreditAdjustments(credit: Decimal, billed: BilledTotal, currency: string): LineAdjustments {
  const takeShare = (whole: Decimal) => {
    if (!billed.amount.gt(0) || !whole.gt(0)) return ZERO;
    if (credit.gte(billed.amount)) return whole.negated();
    return Decimal.min(whole, roundMoney(whole.times(credit).dividedBy(billed.amount), currency)).negated();
  };
  const taxes = billed.taxes.map((share) => ({ ...share, tax_amount: takeShare(share.tax_amount) }));
  return {
    line_item_discount: takeShare(billed.line_item_discount),
    invoice_level_discount: takeShare(billed.invoice_level_discount),
    prepaid_credits_applied: takeShare(billed.prepaid_credits_applied),
    shares: billed.shares?.map((share) => ({ ...share, discount_amount: takeShare(share.discount_amount) })),
    taxes: taxes.filter(({ tax_amount }) => !tax_amount.isZero()),
  };
}
