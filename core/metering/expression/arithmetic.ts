/**
 * The arithmetic of expressions that is more than adding and multiplying. Sums, differences, products and whole powers are
 * exact; a quotient, root, logarithm or fractional power has 60 significant digits, half away from zero. A result that is
 * no finite number (x/0, sqrt(-1), log(0), beyond 10^309) makes the event unusable, as it does where numbers are doubles.
 */
import type { Decimal } from '../../decimal.ts';
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
/** Where doubles would overflow; and the finest decimal place that an intermediate result keeps. */
const MAX_WHOLE_DIGITS = 309;
export const MAX_SCALE = 400;
const MAX_EXACT_POWER_DIGITS = 600;

/** What an operation costs by the longer of its numbers: up to 80 digits, up to 320, and up to the 709 that are kept. */
type WorkByLength = readonly [up_to_80: number, up_to_320: number, longer: number];
const ADD_WORK: WorkByLength = [4, 6, 10];
const COMPARE_WORK: WorkByLength = [3, 5, 8];
const MULTIPLY_WORK: WorkByLength = [6, 14, 40];
const DIVIDE_WORK: WorkByLength = [20, 30, 60];
const ROUND_WORK: WorkByLength = [8, 20, 50];

/** Safe integers of a usual scale cost what their operator weighs; what is longer is charged before it is done. */
function charge(a: Exact, b: Exact, work: WorkByLength): void {
  if (a.big === undefined && b.big === undefined && a.scale <= SHORT_SCALE && b.scale <= SHORT_SCALE) return;
  spend(work[Math.max(lengthClass(a), lengthClass(b))]!);
}

const SHORT_SCALE = 15;
const LENGTHS = [toPowerOfTen(80), toPowerOfTen(320)] as const;

/** Also a short number counts as long where it stands far behind the point: it is brought to the scale of another one. */
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

/** Which of two is greater, as `compare`. */
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

/** Quotients that end after a few digits, which most do: prices per thousand, quarters, eighths. */
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
 * What divideBig answers, for the quotients of two safe integers that have no end, such as a third: the 60 digits come from
 * one division of bigints, because how many places must be brought up is known beforehand, and half of the divisor is
 * added before instead of looking at the remainder behind.
 */
function divideEndless(a: Exact, b: Exact): Exact | undefined {
  if (a.big !== undefined || b.big !== undefined) return undefined;
  const numerator = Math.abs(a.small);
  const divisor = Math.abs(b.small);
  const longer = countDigits(divisor) - countDigits(numerator);
  // Both aligned to the same number of digits. A side beyond the safe integers is rounded, and larger than the other even so.
  const isAboveOne = numerator * (POWERS_OF_TEN[longer] ?? 1) >= divisor * (POWERS_OF_TEN[-longer] ?? 1);
  const places = SIGNIFICANT_DIGITS + longer - (isAboveOne ? 1 : 0);
  const scale = a.scale - b.scale + places;
  if (scale <= 0 || scale > MAX_SCALE) return undefined;
  const doubled = BigInt(a.small) * TWICE_POWERS_OF_TEN[places]!;
  const quotient = (a.small < 0 ? doubled - BigInt(divisor) : doubled + BigInt(divisor)) / (2n * BigInt(b.small));
  return quotient % 10n === 0n ? shortened(quotient, scale) : new Exact(0, scale, quotient);
}

/** How many digits a safe integer that is not negative has. */
function countDigits(value: number): number {
  let length = 1;
  while (length < POWERS_OF_TEN.length && value >= POWERS_OF_TEN[length]!) length++;
  return length;
}

const TWICE_POWERS_OF_TEN: readonly bigint[] = Array.from({ length: 80 }, (_, places) => 2n * toPowerOfTen(places));

/** 60 significant digits: as many places are brought up that the integer quotient has 60 or 61 of them. */
function divideBig(a: Exact, b: Exact): Exact {
  const numerator = toMantissa(a);
  const divisor = toMantissa(b);
  const places = SIGNIFICANT_DIGITS + decimalDigits(divisor) - decimalDigits(numerator);
  const scaledUp = places >= 0 ? numerator * toPowerOfTen(places) : numerator;
  const scaledDivisor = places >= 0 ? divisor : divisor * toPowerOfTen(-places);
  // The quotient has 60 digits or 61, and the comparison tells which, without dividing twice.
  const spare = absolutely(scaledUp) >= absolutely(scaledDivisor) * toPowerOfTen(SIGNIFICANT_DIGITS) ? 1 : 0;
  const quotient = divideRounded(scaledUp, spare === 0 ? scaledDivisor : scaledDivisor * 10n);
  return shortened(quotient, a.scale - b.scale + places - spare);
}

function absolutely(value: bigint): bigint {
  return value < 0n ? -value : value;
}

/** The same number without trailing zeros behind the point, and within bounds. */
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

/** What is left of the 60 digits of a quotient after some steps: its last ones are not those of the true number. */
const TRUSTED_DIGITS = 50;

/**
 * A number that quotients or roots went into, to the digits that can be trusted: a third of a number, times three, is that
 * number again, before anything is decided by it.
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

/** floor, ceil or round of a quotient, without a quotient that was rounded before: ceil(duration / 60) is exact. */
export function divideToWhole(a: Exact, b: Exact, direction: RoundingDirection): Exact {
  if (isZero(b)) throw new UnusableEvent('the expression divides by zero');
  if (a.big === undefined && b.big === undefined && a.scale === b.scale)
    return smallQuotient(a.small, b.small, direction);
  charge(a, b, DIVIDE_WORK);
  const scale = Math.max(a.scale, b.scale);
  return bigQuotient(mantissaAt(a, scale), mantissaAt(b, scale), direction);
}

/** The remainder of safe integers is exact, and so is the quotient once the remainder is taken off. */
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

/** What a quotient cut off towards zero still lacks, when there is a remainder. */
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

/** Of a base greater than 0. */
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

/** A literal, within bounds. */
export function fromDecimal(value: Decimal): Exact {
  if (value.isNaN()) throw new UnusableEvent('the result of the expression is not a number');
  if (!value.isFinite() || value.e > MAX_WHOLE_DIGITS) throw tooLarge();
  const places = Math.min(value.decimalPlaces(), MAX_SCALE);
  return bounded(BigInt(value.toFixed(places).replace('.', '')), places);
}
