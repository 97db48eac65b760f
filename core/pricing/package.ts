/**
 * PACKAGE: packages = quantity / divide_by rounded `up` (default) or `down`; packages × amount. It rounds the number of
 * packages, not the quantity (docs/rules/pricing.md, "Packages").
 */
import type { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import { type ChargePart, chargePart, type PriceTerms } from './terms.ts';

export function packagePrice(price: PriceTerms, quantity: Decimal): ChargePart[] {
  if (price.amount === null || price.amount === undefined) throw invalid('amount', 'is required for PACKAGE');
  const packages = packagesOf(price, quantity);
  return packages.isZero() ? [] : [chargePart(null, packages, { unit_amount: price.amount })];
}

/** Whole packages and a remainder, both exact: a quotient rounded to some digits could turn a sliver into nothing. */
function packagesOf({ transform_quantity }: PriceTerms, quantity: Decimal): Decimal {
  if (!transform_quantity) throw invalid('transform_quantity', 'is required for PACKAGE');
  const { divide_by, round } = transform_quantity;
  if (!(divide_by >= 1)) throw invalid('transform_quantity.divide_by', 'must be at least 1');
  const whole = quantity.divToInt(divide_by);
  const hasRest = whole.times(divide_by).lt(quantity);
  return hasRest && round !== 'down' ? whole.plus(1) : whole;
}
