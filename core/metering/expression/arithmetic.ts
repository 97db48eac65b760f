/**
 * The arithmetic of expressions, with its bounds and costs. Sums, differences, products and whole powers are exact. A
 * quotient, root, logarithm or fractional power has 60 significant digits, rounded half away from zero. A result that is
 * not a finite number (x/0, sqrt(-1), log(0), beyond 10^309) makes the event unusable, as it would with doubles.
 */
import type { Decimal } from '../../foundation/decimal.ts';
import {
  compare,
  divideRounded,
  EXACT_ONE,
  EXACT_ZERO,
  Exact,
  isNegative,
  isSafe,
  isZero,
  mantissaAt,
  minus,
  negated,
  POWERS_OF_TEN,
  plus,
  times,
  toExact,
  toMantissa,
  toPowerOfTen,
} from '../exact.ts';
import { computeLogarithm, computePower, computeRoot, decimalDigits, type Rounded } from './transcendental.ts';
import { spend, UnusableEvent } from './work.ts';

const SIGNIFICANT_DIGITS = 60;
/** Whole digits at which doubles overflow; MAX_SCALE is the finest decimal place of an intermediate result. */
const MAX_WHOLE_DIGITS = 309;
export const MAX_SCALE = 400;
const MAX_EXACT_POWER_DIGITS = 600;

/** Cost of an operation by the digits of its longer operand: up to 80, up to 320, and up to the maximum of 709. */
type WorkByLength = readonly [up_to_80: number, up_to_320: number, longer: number];
const ADD_WORK: WorkByLength = [4, 6, 10];
const COMPARE_WORK: WorkByLength = [3, 5, 8];
const MULTIPLY_WORK: WorkByLength = [6, 14, 40];
const DIVIDE_WORK: WorkByLength = [20, 30, 60];
const ROUND_WORK: WorkByLength = [8, 20, 50];

/** Charges the additional work of long numbers before the operation. The operator's weight covers safe integers with few decimal places. */
function charge(a: Exact, b: Exact, work: WorkByLength): void {
  if (a.big === undefined && b.big === undefined && a.scale <= SHORT_SCALE && b.scale <= SHORT_SCALE) return;
  spend(work[Math.max(lengthClass(a), lengthClass(b))]!);
}

const SHORT_SCALE = 15;
const LENGTHS = [toPowerOfTen(80), toPowerOfTen(320)] as const;

/** A short number with many decimal places counts as long, because it is scaled to match the other operand. */
function lengthClass({ big, scale }: Exact): 0 | 1 | 2 {
  const magnitude = big === undefined ? 0n : big < 0n ? -big : big;
  if (scale > 320 || magnitude >= LENGTHS[1]) return 2;
  return scale > 80 || magnitude >= LENGTHS[0] ? 1 : 0;
}

export function add(a: Exact, b: Exact): Exact {
  charge(a, b, ADD_WORK);
  return plus(a, b);
}

export function subtract(a: Exact, b: Exact): Exact {
  charge(a, b, ADD_WORK);
  return minus(a, b);
}

/** Compares like `compare`, and charges the work of long numbers. */
export function order(a: Exact, b: Exact): number {
  charge(a, b, COMPARE_WORK);
  return compare(a, b);
}

export function multiply(a: Exact, b: Exact): Exact {
  charge(a, b, MULTIPLY_WORK);
  const product = times(a, b);
  return product.big === undefined && product.scale <= MAX_SCALE
    ? product
    : bounded(toMantissa(product), product.scale);
}

export function divide(a: Exact, b: Exact): Exact {
  if (isZero(b)) throw new UnusableEvent('the expression divides by zero');
  if (isZero(a)) return EXACT_ZERO;
  charge(a, b, DIVIDE_WORK);
  return divideSmall(a, b) ?? divideEndless(a, b) ?? divideBig(a, b);
}

/** Handles quotients that end after a few digits, as most do: prices per thousand, quarters, eighths. */
function divideSmall(a: Exact, b: Exact): Exact | undefined {
  if (a.big !== undefined || b.big !== undefined) return undefined;
  for (let places = 0; places <= 6; places++) {
    const numerator = a.small * POWERS_OF_TEN[places]!;
    if (!isSafe(numerator)) return undefined;
    if (numerator % b.small !== 0) continue;
    const quotient = numerator / b.small;
    const scale = a.scale + places - b.scale;
    if (scale >= 0) return new Exact(quotient, scale, undefined);
    return toExact(BigInt(quotient) * toPowerOfTen(-scale), 0);
  }
  return undefined;
}

/**
 * Returns the result of divideBig for two safe integers whose quotient does not end, such as a third. One bigint division
 * gives the 60 digits. The number of places is computed in advance, and half of the divisor is added before the division,
 * so the remainder needs no check.
 */
function divideEndless(a: Exact, b: Exact): Exact | undefined {
  if (a.big !== undefined || b.big !== undefined) return undefined;
  const numerator = Math.abs(a.small);
  const divisor = Math.abs(b.small);
  const longer = countDigits(divisor) - countDigits(numerator);
  // Both sides are aligned to one number of digits. A side beyond the safe integers is rounded but is still the larger one.
  const isAboveOne = numerator * (POWERS_OF_TEN[longer] ?? 1) >= divisor * (POWERS_OF_TEN[-longer] ?? 1);
  const places = SIGNIFICANT_DIGITS + longer - (isAboveOne ? 1 : 0);
  const scale = a.scale - b.scale + places;
  if (scale <= 0 || scale > MAX_SCALE) return undefined;
  const doubled = BigInt(a.small) * TWICE_POWERS_OF_TEN[places]!;
  const quotient = (a.small < 0 ? doubled - BigInt(divisor) : doubled + BigInt(divisor)) / (2n * BigInt(b.small));
  return quotient % 10n === 0n ? shortened(quotient, scale) : new Exact(0, scale, quotient);
}

/** Number of digits of a non-negative safe integer. */
function countDigits(value: number): number {
  let length = 1;
  while (length < POWERS_OF_TEN.length && value >= POWERS_OF_TEN[length]!) length++;
  return length;
}

const TWICE_POWERS_OF_TEN: readonly bigint[] = Array.from({ length: 80 }, (_, places) => 2n * toPowerOfTen(places));

/** Divides to 60 significant digits: the numerator is scaled so that the integer quotient has 60 or 61 digits. */
function divideBig(a: Exact, b: Exact): Exact {
  const numerator = toMantissa(a);
  const divisor = toMantissa(b);
  const places = SIGNIFICANT_DIGITS + decimalDigits(divisor) - decimalDigits(numerator);
  const scaledUp = places >= 0 ? numerator * toPowerOfTen(places) : numerator;
  const scaledDivisor = places >= 0 ? divisor : divisor * toPowerOfTen(-places);
  // This comparison shows whether the quotient has 60 or 61 digits, without a second division.
  const spare = absolutely(scaledUp) >= absolutely(scaledDivisor) * toPowerOfTen(SIGNIFICANT_DIGITS) ? 1 : 0;
  const quotient = divideRounded(scaledUp, spare === 0 ? scaledDivisor : scaledDivisor * 10n);
  return shortened(quotient, a.scale - b.scale + places - spare);
}

function absolutely(value: bigint): bigint {
  return value < 0n ? -value : value;
}

/** Removes trailing zeros after the point and checks the bounds. */
function shortened(mantissa: bigint, scale: number): Exact {
  if (scale <= 0) return bounded(mantissa * toPowerOfTen(-scale), 0);
  if (mantissa % 10n !== 0n) return bounded(mantissa, scale);
  const text = mantissa.toString();
  let zeros = 0;
  while (zeros < scale && text.charCodeAt(text.length - 1 - zeros) === 48) zeros++;
  return bounded(zeros === 0 ? mantissa : BigInt(text.slice(0, text.length - zeros)), scale - zeros);
}

function bounded(mantissa: bigint, scale: number): Exact {
  if (scale > MAX_SCALE) return bounded(divideRounded(mantissa, toPowerOfTen(scale - MAX_SCALE)), MAX_SCALE);
  const limit = toPowerOfTen(MAX_WHOLE_DIGITS + scale);
  if (mantissa >= limit || mantissa <= -limit) throw tooLarge();
  return toExact(mantissa, scale);
}

function tooLarge(): UnusableEvent {
  return new UnusableEvent('the result of the expression is too large');
}

/** Number of leading digits of a 60-digit quotient that are still exact after some further operations. */
const TRUSTED_DIGITS = 50;

/**
 * Rounds a number that contains quotients or roots to its trusted digits. Then a third of a number, times three, equals
 * that number again, before a comparison or a rounding depends on it.
 */
export function roundToTrusted(value: Exact): Exact {
  if (value.big === undefined || value.scale === 0) return value;
  const spare = Math.min(decimalDigits(value.big) - TRUSTED_DIGITS, value.scale);
  if (spare <= 0) return value;
  charge(value, value, ROUND_WORK);
  return shortened(divideRounded(value.big, toPowerOfTen(spare)), value.scale - spare);
}

export type RoundingDirection = 'floor' | 'ceil' | 'round';

export function toWhole(value: Exact, direction: RoundingDirection): Exact {
  if (value.scale === 0) return value;
  const divisor = value.scale < POWERS_OF_TEN.length ? POWERS_OF_TEN[value.scale] : undefined;
  if (value.big === undefined && divisor !== undefined) return smallQuotient(value.small, divisor, direction);
  charge(value, value, ROUND_WORK);
  return bigQuotient(toMantissa(value), toPowerOfTen(value.scale), direction);
}

/**
 * Computes floor, ceil or round of the exact quotient, without rounding the quotient first: ceil(duration / 60) is
 * exact.
 */
export function divideToWhole(a: Exact, b: Exact, direction: RoundingDirection): Exact {
  if (isZero(b)) throw new UnusableEvent('the expression divides by zero');
  if (a.big === undefined && b.big === undefined && a.scale === b.scale)
    return smallQuotient(a.small, b.small, direction);
  charge(a, b, DIVIDE_WORK);
  const scale = Math.max(a.scale, b.scale);
  return bigQuotient(mantissaAt(a, scale), mantissaAt(b, scale), direction);
}

/** The remainder of safe integers is exact, and so is the quotient after the remainder is subtracted. */
function smallQuotient(numerator: number, divisor: number, direction: RoundingDirection): Exact {
  const rest = numerator % divisor;
  const quotient = (numerator - rest) / divisor;
  const sign = numerator < 0 === divisor < 0 ? 1 : -1;
  const isHalf = direction === 'round' && Math.abs(rest) >= Math.abs(divisor) - Math.abs(rest);
  return new Exact(rest === 0 ? quotient : quotient + step(direction, sign, isHalf), 0, undefined);
}

function bigQuotient(numerator: bigint, divisor: bigint, direction: RoundingDirection): Exact {
  if (direction === 'round') return toExact(divideRounded(numerator, divisor), 0);
  const rest = numerator % divisor;
  const sign = numerator < 0n === divisor < 0n ? 1 : -1;
  return toExact(numerator / divisor + (rest === 0n ? 0n : BigInt(step(direction, sign, false))), 0);
}

/** Computes the correction (-1, 0 or 1) of a quotient that was truncated towards zero and left a remainder. */
function step(direction: RoundingDirection, sign: number, isHalf: boolean): number {
  if (direction === 'round') return isHalf ? sign : 0;
  if (direction === 'floor') return sign < 0 ? -1 : 0;
  return sign > 0 ? 1 : 0;
}

export function absolute(value: Exact): Exact {
  return isNegative(value) ? negated(value) : value;
}

export function greater(a: Exact, b: Exact): Exact {
  return order(a, b) >= 0 ? a : b;
}

export function lesser(a: Exact, b: Exact): Exact {
  return order(a, b) <= 0 ? a : b;
}

export function power(base: Exact, exponent: Exact): Exact {
  const whole = toWhole(exponent, 'floor');
  const isWhole = compare(whole, exponent) === 0;
  if (isWhole && whole.big === undefined) {
    if (whole.small < 0) return divide(EXACT_ONE, power(base, negated(whole)));
    if (whole.small === 0) return EXACT_ONE;
  }
  if (isZero(base)) {
    if (isNegative(exponent)) throw tooLarge();
    return EXACT_ZERO;
  }
  if (isWhole && whole.big === undefined) {
    const digits = decimalDigits(toMantissa(base)) * whole.small;
    if (digits <= MAX_EXACT_POWER_DIGITS && base.scale * whole.small <= MAX_SCALE) {
      spend(POWER_WORK + digits / 8);
      return bounded(toMantissa(base) ** BigInt(whole.small), base.scale * whole.small);
    }
  }
  if (!isNegative(base)) return approximatePower(base, exponent);
  if (!isWhole) throw new UnusableEvent('the result of the expression is not a number');
  const magnitude = approximatePower(negated(base), exponent);
  return (toMantissa(whole) & 1n) === 0n ? magnitude : negated(magnitude);
}

const POWER_WORK = 5;

/** Computes a power approximately. The base must be greater than 0. */
function approximatePower(base: Exact, exponent: Exact): Exact {
  if (compare(base, EXACT_ONE) === 0) return EXACT_ONE;
  const found = computePower(base, exponent);
  if (found === 'too large') throw tooLarge();
  return found === 'zero' ? EXACT_ZERO : fromRounded(found);
}

export function squareRoot(value: Exact): Exact {
  if (isNegative(value)) throw new UnusableEvent('the expression takes the square root of a negative number');
  return isZero(value) ? EXACT_ZERO : fromRounded(computeRoot(value));
}

export function naturalLogarithm(value: Exact): Exact {
  if (isZero(value) || isNegative(value)) {
    throw new UnusableEvent('the expression takes the logarithm of a number that is not positive');
  }
  return compare(value, EXACT_ONE) === 0 ? EXACT_ZERO : fromRounded(computeLogarithm(value));
}

function fromRounded({ mantissa, scale }: Rounded): Exact {
  return shortened(mantissa, scale);
}

/** Converts a literal and checks its bounds. */
export function fromDecimal(value: Decimal): Exact {
  if (value.isNaN()) throw new UnusableEvent('the result of the expression is not a number');
  if (!value.isFinite() || value.e > MAX_WHOLE_DIGITS) throw tooLarge();
  const places = Math.min(value.decimalPlaces(), MAX_SCALE);
  return bounded(BigInt(value.toFixed(places).replace('.', '')), places);
}
