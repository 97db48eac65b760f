/**
 * A credit includes a share of the discounts, the prepaid credits and the tax of the billed charge (docs/rules/invoices.md, "What is given
 * back"), in proportion to the credited amount. It is rounded, and at most the part that earlier credits left. A credit of the whole
 * remaining amount includes all of that part.
 */

import { type LineTax, type TaxShare } from '../catalog/tax/line-tax.ts';
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { roundMoney } from '../foundation/money.ts';
import {
  type AdjustmentAmounts,
  buildAdjustments,
  type LineAdjustmentField,
  sumDiscounts,
} from './adjustment-fields.ts';
import { type DiscountShare, type LineDiscount, mergeShares } from './discounts.ts';

/** Adjustments of a line. On a credit line, the prepaid credits return to their lots, and only the rest is money. */
export type LineAdjustments = AdjustmentAmounts & {
  /** Discounts by coupon; absent if unknown. */
  readonly shares?: readonly DiscountShare[] | undefined;
  readonly taxes: readonly TaxShare[];
};
export type BilledTotal = LineAdjustments & { readonly amount: Decimal };

export type BilledLine = { readonly [Field in LineAdjustmentField]: string } & {
  readonly amount: string;
  readonly discounts?: readonly LineDiscount[] | null | undefined;
  readonly taxes?: readonly LineTax[] | null | undefined;
};

/** Sums up the amounts of a charge and its later credits, and adds them to `others`. */
export function sumBilledLines(lines: readonly BilledLine[], others?: BilledTotal): BilledTotal {
  const byRate = new Map(others?.taxes.map((share) => [`${share.tax_rate_id} ${share.tax_behavior}`, share]));
  for (const { taxes } of lines)
    for (const { tax_rate_id, tax_behavior, tax_amount } of taxes ?? []) {
      const key = `${tax_rate_id} ${tax_behavior}`;
      const before = byRate.get(key)?.tax_amount ?? ZERO;
      byRate.set(key, { tax_rate_id, tax_behavior, tax_amount: before.plus(tax_amount) });
    }
  const sum = (field: 'amount' | LineAdjustmentField) =>
    sumDecimals([others?.[field] ?? ZERO, ...lines.map((line) => new Decimal(line[field]))]);
  return {
    amount: sum('amount'),
    ...buildAdjustments(sum),
    shares: mergeDiscountShares(lines, others),
    taxes: [...byRate.values()],
  };
}

/** Sums up discounts by coupon. Returns undefined if some of the discounts were recorded without their coupons. */
function mergeDiscountShares(lines: readonly BilledLine[], others?: BilledTotal): DiscountShare[] | undefined {
  const isUnknown = (line: BilledLine) => !line.discounts && !sumDiscounts(line).isZero();
  if (lines.some(isUnknown)) return undefined;
  if (others && !others.shares && !sumDiscounts(others).isZero()) return undefined;
  const discounts = lines.flatMap((line) => line.discounts ?? []);
  const shares = discounts.map((one) => ({ ...one, discount_amount: new Decimal(one.discount_amount) }));
  return mergeShares([...(others?.shares ?? []), ...shares]);
}

/** Computes the adjustments of a credit line. `credit` must not be negative; the results are 0 or negative. */
export function computeCreditAdjustments(credit: Decimal, billed: BilledTotal, currency: string): LineAdjustments {
  const takeShare = (whole: Decimal) => {
    if (!billed.amount.gt(0) || !whole.gt(0)) return ZERO;
    if (credit.gte(billed.amount)) return whole.negated();
    return Decimal.min(whole, roundMoney(whole.times(credit).dividedBy(billed.amount), currency)).negated();
  };
  const taxes = billed.taxes.map((share) => ({ ...share, tax_amount: takeShare(share.tax_amount) }));
  return {
    ...buildAdjustments((field) => takeShare(billed[field])),
    shares: billed.shares?.map((share) => ({ ...share, discount_amount: takeShare(share.discount_amount) })),
    taxes: taxes.filter(({ tax_amount }) => !tax_amount.isZero()),
  };
}
