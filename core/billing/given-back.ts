/**
 * What is given back takes with it what was taken off and put on (docs/rules/invoices.md, "What is given back"): of the discounts
 * and the tax of what was billed the share of what is credited, rounded, and never more than what is left of them. What
 * exhausts the amount takes all that is left.
 */
import { Decimal, sumOf, ZERO } from '../decimal.ts';
import { roundMoney } from '../money.ts';
import { type LineTax, type TaxShare } from '../tax/line-tax.ts';

/** What goes with the amount of a line. */
export type BesideAmount = {
  readonly line_item_discount: Decimal;
  readonly invoice_level_discount: Decimal;
  readonly taxes: readonly TaxShare[];
};
export type BilledInAll = BesideAmount & { readonly amount: Decimal };

export type BilledLine = {
  readonly amount: string;
  readonly line_item_discount: string;
  readonly invoice_level_discount: string;
  readonly taxes?: readonly LineTax[] | null | undefined;
};

/** A line with everything that was credited of it since; on top of what is known of others. */
export function billedInAll(lines: readonly BilledLine[], others?: BilledInAll): BilledInAll {
  const byRate = new Map(others?.taxes.map((share) => [`${share.tax_rate_id} ${share.tax_behavior}`, share]));
  for (const { taxes } of lines)
    for (const { tax_rate_id, tax_behavior, tax_amount } of taxes ?? []) {
      const key = `${tax_rate_id} ${tax_behavior}`;
      const before = byRate.get(key)?.tax_amount ?? ZERO;
      byRate.set(key, { tax_rate_id, tax_behavior, tax_amount: before.plus(tax_amount) });
    }
  const sum = (field: 'amount' | 'line_item_discount' | 'invoice_level_discount') =>
    sumOf([others?.[field] ?? ZERO, ...lines.map((line) => new Decimal(line[field]))]);
  return {
    amount: sum('amount'),
    line_item_discount: sum('line_item_discount'),
    invoice_level_discount: sum('invoice_level_discount'),
    taxes: [...byRate.values()],
  };
}

/** `credit` is not negative; what goes with it is, as the line that gives it back says it. */
export function givenBackWith(credit: Decimal, billed: BilledInAll, currency: string): BesideAmount {
  const shareOf = (whole: Decimal) => {
    if (!billed.amount.gt(0) || !whole.gt(0)) return ZERO;
    if (credit.gte(billed.amount)) return whole.negated();
    return Decimal.min(whole, roundMoney(whole.times(credit).dividedBy(billed.amount), currency)).negated();
  };
  const taxes = billed.taxes.map((share) => ({ ...share, tax_amount: shareOf(share.tax_amount) }));
  return {
    line_item_discount: shareOf(billed.line_item_discount),
    invoice_level_discount: shareOf(billed.invoice_level_discount),
    taxes: taxes.filter(({ tax_amount }) => !tax_amount.isZero()),
  };
}
