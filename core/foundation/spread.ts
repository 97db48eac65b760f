/**
 * Spreads an amount of money in proportion to weights (docs/rules/numbers.md, "Spreading an amount"). Each part is in whole minor units,
 * and the parts sum to the amount. Shares are rounded down. The remaining units go to the largest remainders, and to the last one among
 * equals.
 */
import { Decimal, sumDecimals, ZERO } from './decimal.ts';
import { FarthingError } from './error.ts';
import { minorUnits } from './money.ts';

/** Spreads an amount by weights. `amount` and `weights` must not be negative, and `amount` must be in whole minor units. */
export function spread(amount: Decimal, weights: readonly Decimal[], currency: string): Decimal[] {
  const whole = sumDecimals(weights);
  if (amount.isZero()) return weights.map(() => ZERO);
  if (!whole.gt(0) || amount.isNegative() || weights.some((weight) => weight.isNegative()))
    throw new FarthingError('system_error', `${amount.toFixed()} ${currency} has nothing to be spread over`);
  const digits = minorUnits(currency);
  if (amount.decimalPlaces() > digits)
    throw new FarthingError(
      'system_error',
      `${amount.toFixed()} has more decimals than ${currency}: it cannot be spread`,
    );
  const unit = new Decimal(10).pow(-digits);
  const shares = weights.map((weight, index) => {
    const exact = amount.times(weight).dividedBy(whole);
    const part = exact.toDecimalPlaces(digits, Decimal.ROUND_DOWN);
    return { index, part, remainder: exact.minus(part) };
  });
  let left = amount.minus(sumDecimals(shares.map(({ part }) => part)));
  const parts = shares.map(({ part }) => part);
  for (const { index } of shares.toSorted((a, b) => b.remainder.comparedTo(a.remainder) || b.index - a.index)) {
    if (!left.gt(0)) break;
    parts[index] = parts[index]!.plus(unit);
    left = left.minus(unit);
  }
  return parts;
}
