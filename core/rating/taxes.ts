/**
 * Computes the taxes of an invoice (docs/rules/taxes.md, "On an invoice"). The tax of each rate is rounded before the sum, and spread over
 * the lines. An inclusive tax is a part of the amounts. An exclusive tax is computed from the amounts without inclusive taxes, and added to
 * them.
 */

import type { TaxShare } from '../catalog/tax/line-tax.ts';
import type { TaxRate } from '../catalog/tax/record.ts';
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { roundMoney } from '../foundation/money.ts';
import { spread } from '../foundation/spread.ts';

export type RateInForce = {
  readonly rate: Pick<TaxRate, 'id' | 'tax_rate_type' | 'percentage_value' | 'fixed_value' | 'tax_behavior'>;
  readonly tax_association_id: string | null;
};

export type AppliedTax = {
  readonly by: RateInForce;
  readonly taxable_amount: Decimal;
  readonly tax_amount: Decimal;
};

type AppliedTaxes = {
  readonly applied: readonly AppliedTax[];
  readonly lines: readonly (readonly TaxShare[])[];
};

/**
 * Computes the taxes of all rates. `amounts` are the taxable amounts of the lines, in line order; a negative one lowers the taxable total.
 */
export function computeTaxes(
  amounts: readonly Decimal[],
  rates: readonly RateInForce[],
  currency: string,
): AppliedTaxes {
  const base = Decimal.max(ZERO, sumDecimals(amounts));
  const isInclusive = ({ rate }: RateInForce) => rate.tax_behavior === 'inclusive';
  const contained = computeIncludedTaxes(base, rates.filter(isInclusive), currency);
  const net = base.minus(sumDecimals(contained.map(({ tax_amount }) => tax_amount)));
  const added = rates
    .filter((by) => !isInclusive(by))
    .map((by) => ({ by, taxable_amount: net, tax_amount: computeTax(net, by, currency) }));
  const byRate = new Map([...contained, ...added].map((one) => [one.by, one]));
  const applied = rates.map((by) => byRate.get(by)!);
  const weights = amounts.map((amount) => Decimal.max(ZERO, amount));
  const inside = spreadIncluded(contained, weights, currency);
  const shares = applied.map((tax) => inside.get(tax) ?? spread(tax.tax_amount, weights, currency));
  const lines = amounts.map((_, line) =>
    applied.flatMap(({ by: { rate } }, tax) => {
      const tax_amount = shares[tax]![line]!;
      return tax_amount.isZero() ? [] : [{ tax_rate_id: rate.id, tax_behavior: rate.tax_behavior, tax_amount }];
    }),
  );
  return { applied, lines };
}

/**
 * Spreads inclusive taxes over the lines. The sum of all of them is spread first, so that a line never contains more
 * tax than its amount. Each rate then gets its share of a line's tax, within the rest that the previous rates left.
 */
function spreadIncluded(
  contained: readonly AppliedTax[],
  weights: readonly Decimal[],
  currency: string,
): Map<AppliedTax, Decimal[]> {
  let left = spread(sumDecimals(contained.map(({ tax_amount }) => tax_amount)), weights, currency);
  return new Map(
    contained.map((tax) => {
      const shares = spread(tax.tax_amount, left, currency);
      left = left.map((amount, line) => amount.minus(shares[line]!));
      return [tax, shares];
    }),
  );
}

/** Computes the tax of one rate. If the taxable amount is 0, there is no tax, not even a fixed one. */
function computeTax(base: Decimal, { rate }: RateInForce, currency: string): Decimal {
  if (base.isZero()) return ZERO;
  return roundMoney(computeExactTax(base, rate), currency);
}

function computeExactTax(
  base: Decimal,
  { tax_rate_type, fixed_value, percentage_value }: RateInForce['rate'],
): Decimal {
  if (tax_rate_type === 'fixed') return new Decimal(fixed_value ?? 0);
  return base.times(percentage_value ?? 0).dividedBy(100);
}

/** Computes the included taxes. Each rate applies to the net amount: base = net + fixed taxes + net × all percentages. */
function computeIncludedTaxes(base: Decimal, rates: readonly RateInForce[], currency: string): AppliedTax[] {
  const selectRates = (type: 'fixed' | 'percentage') => rates.filter(({ rate }) => rate.tax_rate_type === type);
  const fixed = sumDecimals(selectRates('fixed').map(({ rate }) => new Decimal(rate.fixed_value ?? 0)));
  const percent = sumDecimals(selectRates('percentage').map(({ rate }) => new Decimal(rate.percentage_value ?? 0)));
  const net = Decimal.max(ZERO, base.minus(fixed)).times(100).dividedBy(percent.plus(100));
  let left = base;
  return rates
    .map((by) => {
      // The inclusive taxes are together at most the taxable amount of the invoice.
      const tax_amount = Decimal.min(
        left,
        by.rate.tax_rate_type === 'fixed' ? computeTax(base, by, currency) : computeTax(net, by, currency),
      );
      left = left.minus(tax_amount);
      return { by, taxable_amount: base, tax_amount };
    })
    .map((one, _, all) => ({
      ...one,
      taxable_amount: base.minus(sumDecimals(all.map(({ tax_amount }) => tax_amount))),
    }));
}
