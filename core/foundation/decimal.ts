/**
 * One configured decimal for every quantity and amount (docs/rules/numbers.md, "Exact arithmetic"): precision 60, no exponents in text,
 * rounding half away from zero. The global `Decimal` class is never used: its default precision of 20 digits truncates silently.
 */
import { Decimal as DecimalLibrary } from 'decimal.js';

export const Decimal = DecimalLibrary.clone({
  precision: 60,
  toExpNeg: -1e9,
  toExpPos: 1e9,
  rounding: DecimalLibrary.ROUND_HALF_UP,
});
export type Decimal = DecimalLibrary;

export const ZERO: Decimal = new Decimal(0);

/** Decimal text as in the API, or a decimal. A JS number is never money or a quantity. */
export type DecimalInput = string | Decimal;

export function sumDecimals(values: Iterable<Decimal>): Decimal {
  let total = ZERO;
  for (const value of values) total = total.plus(value);
  return total;
}
