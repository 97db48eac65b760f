/**
 * An exact decimal number for the hot path: mantissa × 10^-scale (docs/rules/numbers.md, "Exact arithmetic"). No result
 * is ever a rounded floating-point number: a mantissa is a safe integer, and a result that would exceed the safe range is
 * computed with bigints. decimal.js is exact as well, at 50 times the cost per event.
 */
const MAX_SAFE = Number.MAX_SAFE_INTEGER;

/** 10^0 … 10^15 as numbers: every one of them is a safe integer. */
export const POWERS_OF_TEN: readonly number[] = Array.from({ length: 16 }, (_, exponent) => 10 ** exponent);
const BIG_POWERS_OF_TEN: bigint[] = Array.from({ length: 64 }, (_, exponent) => 10n ** BigInt(exponent));
/** Powers up to this exponent, which expressions can reach, are cached on first use. */
const CACHED_POWER_MAX = 1_200;

export class Exact {
  /** The mantissa, unless `big` holds it. Always a safe integer. */
  readonly small: number;
  /** How many decimal places the mantissa carries; never negative. */
  readonly scale: number;
  readonly big: bigint | undefined;

  constructor(small: number, scale: number, big: bigint | undefined) {
    this.small = small;
    this.scale = scale;
    this.big = big;
  }
}

export const EXACT_ZERO = new Exact(0, 0, undefined);
export const EXACT_ONE = new Exact(1, 0, undefined);

export function toExact(mantissa: bigint, scale: number): Exact {
  if (mantissa <= MAX_SAFE && mantissa >= -MAX_SAFE) return new Exact(Number(mantissa), scale, undefined);
  return new Exact(0, scale, mantissa);
}

export function toMantissa(value: Exact): bigint {
  return value.big === undefined ? BigInt(value.small) : value.big;
}

export function plus(a: Exact, b: Exact): Exact {
  if (a.big === undefined && b.big === undefined) {
    const scale = a.scale > b.scale ? a.scale : b.scale;
    const sum = alignedSmall(a, scale) + alignedSmall(b, scale);
    if (isSafe(sum)) return new Exact(sum, scale, undefined);
  }
  const scale = Math.max(a.scale, b.scale);
  return toExact(mantissaAt(a, scale) + mantissaAt(b, scale), scale);
}

export function minus(a: Exact, b: Exact): Exact {
  return plus(a, negated(b));
}

export function negated(value: Exact): Exact {
  if (value.big === undefined) return new Exact(0 - value.small, value.scale, undefined);
  return new Exact(0, value.scale, -value.big);
}

export function times(a: Exact, b: Exact): Exact {
  if (a.big === undefined && b.big === undefined) {
    const product = a.small * b.small;
    if (isSafe(product)) return product === 0 ? EXACT_ZERO : new Exact(product, a.scale + b.scale, undefined);
  }
  return toExact(toMantissa(a) * toMantissa(b), a.scale + b.scale);
}

/** Negative if `a` < `b`, zero if equal, positive if `a` > `b`. */
export function compare(a: Exact, b: Exact): number {
  const scale = a.scale > b.scale ? a.scale : b.scale;
  if (a.big === undefined && b.big === undefined) {
    const left = alignedSmall(a, scale);
    const right = alignedSmall(b, scale);
    if (isSafe(left) && isSafe(right)) return left - right;
  }
  const left = mantissaAt(a, scale);
  const right = mantissaAt(b, scale);
  return left < right ? -1 : left > right ? 1 : 0;
}

export function isZero(value: Exact): boolean {
  return value.big === undefined ? value.small === 0 : value.big === 0n;
}

export function isNegative(value: Exact): boolean {
  return value.big === undefined ? value.small < 0 : value.big < 0n;
}

/** The mantissa at a scale not smaller than the value's own. */
export function mantissaAt(value: Exact, scale: number): bigint {
  const mantissa = toMantissa(value);
  return scale === value.scale ? mantissa : mantissa * toPowerOfTen(scale - value.scale);
}

/**
 * The mantissa at this scale as a number, or NaN if it is not safe. NaN makes every sum fail `isSafe`, so a caller checks
 * only the sum of two, and sums of the hot path stay numbers. Returning the unsafe number would be wrong: two of them may
 * add up to a safe integer.
 */
function alignedSmall(value: Exact, scale: number): number {
  if (value.scale === scale) return value.small;
  const aligned = value.small * POWERS_OF_TEN[scale - value.scale]!;
  return isSafe(aligned) ? aligned : Number.NaN;
}

/** Whether the number is a safe integer. The sum or product of two safe integers is exact if and only if it is safe itself. */
export function isSafe(value: number): boolean {
  return value <= MAX_SAFE && value >= -MAX_SAFE;
}

export function toPowerOfTen(exponent: number): bigint {
  const known = BIG_POWERS_OF_TEN[exponent];
  if (known !== undefined) return known;
  if (exponent > CACHED_POWER_MAX) return 10n ** BigInt(exponent);
  for (let next = BIG_POWERS_OF_TEN.length; next <= exponent; next++)
    BIG_POWERS_OF_TEN.push(BIG_POWERS_OF_TEN[next - 1]! * 10n);
  return BIG_POWERS_OF_TEN[exponent]!;
}

/** Integer division rounded half away from zero. */
export function divideRounded(numerator: bigint, divisor: bigint): bigint {
  const quotient = numerator / divisor;
  const rest = numerator % divisor;
  const twice = rest < 0n ? -2n * rest : 2n * rest;
  if (twice < (divisor < 0n ? -divisor : divisor)) return quotient;
  return numerator < 0n === divisor < 0n ? quotient + 1n : quotient - 1n;
}

/** Plain decimal text, no exponent, no trailing zeros after the point. */
export function exactText(value: Exact): string {
  const mantissa = toMantissa(value);
  if (value.scale === 0) return mantissa.toString();
  const digits = (mantissa < 0n ? -mantissa : mantissa).toString().padStart(value.scale + 1, '0');
  const point = digits.length - value.scale;
  let end = digits.length;
  while (end > point && digits.charCodeAt(end - 1) === 48) end--;
  const text = end > point ? `${digits.slice(0, point)}.${digits.slice(point, end)}` : digits.slice(0, point);
  return mantissa < 0n ? `-${text}` : text;
}
