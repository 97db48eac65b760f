/**
 * A quantity is a decimal number: text on the wire and Decimal(76, 24) in the store, wide enough that a sum cannot overflow silently. A
 * usable value is less than 10^24 in magnitude. Digits after the 24th decimal place are rounded half away from zero, because a producer
 * that computes with doubles may send more of them (docs/rules/metering.md, "The value of an event"). Anything else is rejected with a
 * reason and never defaults to 0.
 */
import { Decimal } from '../foundation/decimal.ts';
import {
  divideRounded,
  EXACT_ZERO,
  Exact,
  exactText,
  isSafe,
  mantissaAt,
  POWERS_OF_TEN,
  toExact,
  toMantissa,
  toPowerOfTen,
} from './exact.ts';

export const QUANTITY_PLACES = 24;
const QUANTITY_DIGITS = 24;
const QUANTITY_LIMIT = 10n ** BigInt(QUANTITY_DIGITS + QUANTITY_PLACES);

/** Maximum length of a number's text. No real number is longer, and reading a megabyte of digits for each meter would take milliseconds. */
export const NUMBER_TEXT_MAX = 8_192;

type NotAQuantity = 'is not a number' | 'is too large' | 'is a number of more than 8192 characters';

/**
 * Parses a JSON number or a numeric string, rounded to `places`. A numeric string may have whitespace around it, a sign,
 * and no digits on one side of the point. Hexadecimal, Infinity, NaN and digit separators are not numbers.
 */
export function parseQuantity(text: string, places = QUANTITY_PLACES): Exact | NotAQuantity {
  const length = text.length;
  if (length > 17) return parseAnyQuantity(text, places);
  let at = 0;
  let point = -1;
  let digits = 0;
  let mantissa = 0;
  const negative = text.charCodeAt(0) === 45;
  if (negative) at = 1;
  for (; at < length; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (digit >= 0 && digit <= 9) {
      mantissa = mantissa * 10 + digit;
      digits++;
    } else if (digit === -2 && point === -1) point = at;
    else return parseAnyQuantity(text, places);
  }
  if (digits === 0 || digits > 15) return parseAnyQuantity(text, places);
  return new Exact(negative ? 0 - mantissa : mantissa, point === -1 ? 0 : length - 1 - point, undefined);
}

const NUMBER_TEXT = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$/;

/** Parses every text: long ones, exponents, surrounding whitespace. Sizes are checked before any bigint is created. */
function parseAnyQuantity(text: string, places: number): Exact | NotAQuantity {
  if (text.length > NUMBER_TEXT_MAX) return 'is a number of more than 8192 characters';
  const parts = NUMBER_TEXT.exec(text.trim());
  if (parts === null) return 'is not a number';
  const [, sign, whole = '', fraction = '', exponent = '0'] = parts;
  const written = whole + fraction;
  if (written === '') return 'is not a number';
  let first = 0;
  while (first < written.length && written.charCodeAt(first) === 48) first++;
  if (first === written.length) return EXACT_ZERO;
  let last = written.length;
  while (written.charCodeAt(last - 1) === 48) last--;
  const digits = last - first;
  const power = Number(exponent) - fraction.length + (written.length - last);
  if (digits + power > QUANTITY_DIGITS) return 'is too large';
  if (power < -places) {
    const rounded = roundedDigits(written.slice(first, last), digits + power + places);
    if (rounded >= 10n ** BigInt(QUANTITY_DIGITS + places)) return 'is too large';
    return rounded === 0n ? EXACT_ZERO : toExact(sign === '-' ? -rounded : rounded, places);
  }
  const mantissa = BigInt(written.slice(first, last)) * (power > 0 ? toPowerOfTen(power) : 1n);
  return toExact(sign === '-' ? -mantissa : mantissa, power < 0 ? -power : 0);
}

/** The first `digitCount` digits as an integer, rounded half away from zero by the next digit. */
function roundedDigits(digits: string, digitCount: number): bigint {
  if (digitCount < 0) return 0n;
  const cut = digitCount === 0 ? 0n : BigInt(digits.slice(0, digitCount));
  return digits.charCodeAt(digitCount) >= 53 ? cut + 1n : cut;
}

/** Rounds a computed number half away from zero to 24 places; rejects it if it is too large. */
export function roundToQuantity(value: Exact): Exact | NotAQuantity {
  if (value.big === undefined && value.scale <= QUANTITY_PLACES) return value;
  const rounded =
    value.scale <= QUANTITY_PLACES
      ? mantissaAt(value, QUANTITY_PLACES)
      : divideRounded(toMantissa(value), toPowerOfTen(value.scale - QUANTITY_PLACES));
  if (rounded >= QUANTITY_LIMIT || rounded <= -QUANTITY_LIMIT) return 'is too large';
  return value.scale <= QUANTITY_PLACES ? value : toExact(rounded, QUANTITY_PLACES);
}

/** The stored integer: the quantity times 10^24. */
export function toScaled(quantity: Exact): bigint {
  return mantissaAt(quantity, QUANTITY_PLACES);
}

export function fromScaled(scaled: bigint): Exact {
  return toExact(scaled, QUANTITY_PLACES);
}

export function scaledToDecimal(scaled: bigint): Decimal {
  return new Decimal(exactText(toExact(scaled, QUANTITY_PLACES)));
}

/**
 * A running sum that is always exact. While the total is a safe integer at the finest scale seen, an addition is one
 * addition of numbers. A quantity that does not fit is added to a bigint.
 */
export class ExactSum {
  private small = 0;
  private scale = 0;
  private spilled = 0n;

  add(quantity: Exact): void {
    if (quantity.big === undefined) {
      if (quantity.scale === this.scale) {
        const sum = this.small + quantity.small;
        if (isSafe(sum)) {
          this.small = sum;
          return;
        }
      } else if (this.addAtOtherScale(quantity.small, quantity.scale)) return;
    }
    this.spilled += toScaled(quantity);
  }

  addScaled(scaled: bigint): void {
    this.spilled += scaled;
  }

  addSum(other: ExactSum): void {
    this.spilled += other.scaled;
  }

  /** The total times 10^24. */
  get scaled(): bigint {
    if (this.small === 0) return this.spilled;
    return this.spilled + BigInt(this.small) * toPowerOfTen(QUANTITY_PLACES - this.scale);
  }

  private addAtOtherScale(mantissa: number, scale: number): boolean {
    const finer = scale > this.scale;
    const factor = POWERS_OF_TEN[finer ? scale - this.scale : this.scale - scale];
    if (factor === undefined) return false;
    const mine = finer ? this.small * factor : this.small;
    const theirs = finer ? mantissa : mantissa * factor;
    if (!isSafe(mine) || !isSafe(theirs) || !isSafe(mine + theirs)) return false;
    this.small = mine + theirs;
    if (finer) this.scale = scale;
    return true;
  }
}
