/** What is left of revenue after costs, and what that is for each unit of either (docs/rules/costs.md, "Margin and return"). */
import { type Decimal, ZERO } from '../decimal.ts';
import { MAX_FRACTION_DIGITS } from '../money.ts';

export type Margin = {
  /** Revenue − cost. */
  readonly margin: Decimal;
  /** Of the revenue, in percent; 0 where there is none. */
  readonly margin_percent: Decimal;
  /** Margin for each unit of cost; 0 where there is none. */
  readonly roi: Decimal;
  readonly roi_percent: Decimal;
};

export function computeMargin(revenue: Decimal, cost: Decimal): Margin {
  const margin = revenue.minus(cost);
  return {
    margin,
    margin_percent: computeRatio(margin.times(100), revenue),
    roi: computeRatio(margin, cost),
    roi_percent: computeRatio(margin.times(100), cost),
  };
}

/** Nothing can be divided by 0: the answer is 0, and the documentation says so. */
function computeRatio(dividend: Decimal, divisor: Decimal): Decimal {
  return divisor.isZero() ? ZERO : dividend.dividedBy(divisor).toDecimalPlaces(MAX_FRACTION_DIGITS);
}
