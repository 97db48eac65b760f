/** Margin of revenue over cost, and its ratio to the revenue and to the cost (docs/rules/costs.md, "Margin and return"). */
import { type Decimal, ZERO } from '../../foundation/decimal.ts';
import { MAX_FRACTION_DIGITS } from '../../foundation/money.ts';

export type Margin = {
  /** Revenue minus cost. */
  readonly margin: Decimal;
  /** Percent of the revenue; 0 if the revenue is 0. */
  readonly margin_percent: Decimal;
  /** Margin per unit of cost; 0 if the cost is 0. */
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

/** Computes a ratio. A ratio to 0 is documented as 0. */
function computeRatio(dividend: Decimal, divisor: Decimal): Decimal {
  return divisor.isZero() ? ZERO : dividend.dividedBy(divisor).toDecimalPlaces(MAX_FRACTION_DIGITS);
}
