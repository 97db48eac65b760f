/**
 * PACKAGE: packages = quantity / divide_by rounded `up` (default) or `down`; packages × amount. The number of packages is
 * rounded, not the quantity (docs/rules/pricing.md, "Packages").
 */
import type { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { amountText, checkAmount, requireAmount } from './amount.ts';
import { chargePart, type ModelTerms, type PricingModel } from './terms.ts';

export const packagePrice = {
  billing_model: 'PACKAGE',
  tier_mode: null,
  takes: ['amount', 'transform_quantity'],
  check(price) {
    checkAmount(price);
    requirePackage(price);
  },
  parts(price, quantity) {
    const unit_amount = requireAmount(price, 'PACKAGE');
    const packages = computePackages(price, quantity);
    return packages.isZero() ? [] : [chargePart(null, packages, { unit_amount })];
  },
  text: (price) => `${amountText(price.amount)} per ${requirePackage(price).divide_by}`,
} as const satisfies PricingModel;

/** Computes whole packages and a remainder, both exact: a rounded quotient could lose a very small remainder. */
function computePackages(price: ModelTerms, quantity: Decimal): Decimal {
  const { divide_by, round } = requirePackage(price);
  const whole = quantity.divToInt(divide_by);
  const hasRest = whole.times(divide_by).lt(quantity);
  return hasRest && round !== 'down' ? whole.plus(1) : whole;
}

function requirePackage({ transform_quantity }: ModelTerms) {
  if (!transform_quantity) throw invalid('transform_quantity', 'is required for PACKAGE');
  if (!(transform_quantity.divide_by >= 1)) throw invalid('transform_quantity.divide_by', 'must be at least 1');
  return transform_quantity;
}
