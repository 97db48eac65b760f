/**
 * Square roots, logarithms and powers to 60 significant digits, in fixed-point arithmetic on bigints with guard digits.
 * This takes a fiftieth of the time of decimal.js, which needs milliseconds if base and exponent are long. Doubles only
 * provide the starting value of an approximation. The guard digits determine the result, which is therefore equal on
 * every machine.
 *
 * The cost of a call depends on the number of digits, which is known and charged before the calculation (work.ts).
 */
import { divideRounded, type Exact, toExact, toMantissa, toPowerOfTen } from '../exact.ts';
import { spend } from './work.ts';

const SIGNIFICANT_DIGITS = 60;
/** Numbers of guard digits, which are tried in order. The first suffices for all but one number in 10^10. */
const GUARD_DIGITS = [14, 80, 240] as const;
const BITS_PER_DIGIT = Math.log2(10);

/** An approximate number: mantissa × 2^-bits. */
type Fixed = { readonly mantissa: bigint; readonly bits: number };

/** A decimal that was just rounded; the caller removes trailing zeros and checks its size. */
export type Rounded = { readonly mantissa: bigint; readonly scale: number };

/** Computes a square root. The value must not be negative. */
export function computeRoot(value: Exact): Rounded {
  const mantissa = toMantissa(value);
  const digits = decimalDigits(mantissa);
  // Scales the value to an even scale and two more digits than the result has, so that the root of the mantissa is the mantissa of the
  // root.
  let places = 2 * (SIGNIFICANT_DIGITS + 2) - digits;
  if ((value.scale + places) % 2 !== 0) places++;
  spend(ROOT_WORK + digits / 16);
  const radicand = places >= 0 ? mantissa * toPowerOfTen(places) : mantissa / toPowerOfTen(-places);
  return significant(integerRoot(radicand), (value.scale + places) / 2);
}

const ROOT_WORK = 30;

/** The radicand must not be negative. Starts with a double, which has 50 correct bits; each Newton step doubles their number. */
function integerRoot(radicand: bigint): bigint {
  if (radicand === 0n) return 0n;
  const bits = bitLength(radicand);
  const shift = bits > 100 ? (bits - 100) & ~1 : 0;
  let root = BigInt(Math.ceil(Math.sqrt(Number(radicand >> BigInt(shift)))) + 1) << BigInt(shift / 2);
  for (;;) {
    const next = (root + radicand / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

/** The value must be greater than 0 and not 1. */
export function computeLogarithm(value: Exact): Rounded {
  return roundToNearest((guard) => logarithm(value, SIGNIFICANT_DIGITS + guard));
}

/**
 * Computes exp(exponent × log(base)) for a base greater than 0 that is not 1. Returns 'too large' above 10^400 and
 * 'zero' below 10^-402, which an estimate of the logarithm detects first.
 */
export function computePower(base: Exact, exponent: Exact): Rounded | 'too large' | 'zero' {
  const estimate = roughLogarithm(base) * approximate(exponent);
  if (estimate > LARGEST_EXPONENT) return 'too large';
  if (estimate < SMALLEST_EXPONENT) return 'zero';
  const whole = Math.max(0, decimalDigits(toMantissa(exponent)) - exponent.scale);
  return roundToNearest((guard) => {
    const log = logarithm(base, SIGNIFICANT_DIGITS + guard + 3 + whole, true);
    const product = (toMantissa(exponent) * log.mantissa) / toPowerOfTen(exponent.scale);
    const powerBits = Math.ceil((SIGNIFICANT_DIGITS + guard + 4) * BITS_PER_DIGIT);
    const spare = Math.max(0, log.bits - powerBits);
    return exponential({ mantissa: product >> BigInt(spare), bits: log.bits - spare });
  });
}

const LARGEST_EXPONENT = 400 * Math.LN10;
const SMALLEST_EXPONENT = -402 * Math.LN10;

/**
 * Rounds to the nearest decimal of 60 significant digits. If the guard digits do not decide on which side of the midpoint
 * the value lies, more of them are used: log(1 - 3e-59) is 45 followed by 58 zeros and a 9 after the 59th digit. Only a
 * power, such as a square, can lie exactly on the midpoint; it is rounded away from zero.
 */
function roundToNearest(calculate: (guard: number) => Fixed): Rounded {
  for (const guard of GUARD_DIGITS) {
    const near = calculate(guard);
    const [low, high] = [toRounded(near, -CALCULATION_ERROR), toRounded(near, CALCULATION_ERROR)];
    if (isSame(low, high) || guard === GUARD_DIGITS.at(-1)) return high;
  }
  throw new Error('there is no count of guard digits');
}

/** Largest error of a calculation, in units of the last bit: each step truncates one unit, and so does each power of two of a logarithm. */
const CALCULATION_ERROR = 1n << 13n;

/** Whether two results have the same value. Mantissas such as 10^60 and 10^59 may represent one value at different scales. */
function isSame(a: Rounded, b: Rounded): boolean {
  const scale = Math.max(a.scale, b.scale);
  return a.mantissa * toPowerOfTen(scale - a.scale) === b.mantissa * toPowerOfTen(scale - b.scale);
}

/** Computes the logarithm to `digits` significant digits or, if `isPlaces` is set for a power, to that many places after the point. */
function logarithm(value: Exact, digits: number, isPlaces = false): Fixed {
  const { whole, twos } = normalized(value);
  const lost = twos === 0 && !isPlaces ? zerosAfterOne(value) : 0;
  const bits = Math.ceil((digits + lost) * BITS_PER_DIGIT) + 8;
  spend(logarithmWork(bits));
  const near = whole(bits);
  const start = Math.log(toDouble(near, bits));
  const first = toFixedPoint(start, bits);
  // log(t) = first + log(t / e^first), where the quotient is nearly 1.
  const rest = ((near * smallExponential(-first, bits)) >> BigInt(bits)) - (1n << BigInt(bits));
  return { mantissa: first + logarithmNearOne(rest, bits) + BigInt(twos) * computeLogTwo(bits), bits };
}

/** Computes the cost of a logarithm by its precision: twice the bits cost about 3.5 times as much. */
function logarithmWork(bits: number): number {
  return LOGARITHM_WORK * Math.max(1, bits / 256) ** 1.8;
}

const LOGARITHM_WORK = 100;

/** Splits a value: whole(bits) × 2^-bits × 2^twos, with whole(bits) × 2^-bits between about 0.7 and 1.5. */
function normalized(value: Exact): { whole: (bits: number) => bigint; twos: number } {
  const mantissa = toMantissa(value);
  const divisor = toPowerOfTen(value.scale);
  let twos = bitLength(mantissa) - bitLength(divisor);
  const shifted = (by: number) => (by >= 0 ? (mantissa << BigInt(by)) / divisor : mantissa / (divisor << BigInt(-by)));
  const ratio = toDouble(shifted(64 - twos), 64);
  if (ratio > 1.5) twos++;
  else if (ratio < 0.75) twos--;
  return { whole: (bits) => shifted(bits - twos), twos };
}

/** Number of significant digits that the logarithm of a number close to 1 loses. */
function zerosAfterOne(value: Exact): number {
  const distance = toMantissa(value) - toPowerOfTen(value.scale);
  return Math.max(0, value.scale - decimalDigits(distance) + 1);
}

/** Computes log(1 + z) for a very small z. */
function logarithmNearOne(z: bigint, bits: number): bigint {
  let sum = 0n;
  let power = z;
  for (let count = 1n; power !== 0n && power !== -1n; count++) {
    sum += (count & 1n) === 1n ? power / count : -(power / count);
    power = (power * z) >> BigInt(bits);
  }
  return sum;
}

/** Computes e^x for any x that computePower accepts. */
function exponential({ mantissa, bits }: Fixed): Fixed {
  spend(EXPONENTIAL_WORK * Math.max(1, bits / 300) ** 1.8);
  const two = computeLogTwo(bits);
  const twos = Number(mantissa / two);
  const fraction = smallExponential(mantissa - BigInt(twos) * two, bits);
  return { mantissa: fraction, bits: bits - twos };
}

const EXPONENTIAL_WORK = 60;

/** x is halved this often before the series, and the result is squared this often after it. */
const HALVINGS = 8;

/** Computes e^x for an x between -1 and 1. */
function smallExponential(x: bigint, bits: number): bigint {
  const guarded = bits + 2 * HALVINGS;
  const shift = BigInt(guarded);
  const reduced = x << BigInt(HALVINGS);
  const one = 1n << shift;
  let sum = one + reduced;
  let term = reduced;
  for (let count = 2n; ; count++) {
    term = ((term * reduced) >> shift) / count;
    if (term === 0n) break;
    sum += term;
  }
  for (let time = 0; time < HALVINGS; time++) sum = (sum * sum) >> shift;
  return sum >> BigInt(2 * HALVINGS);
}

const TWO_BITS = 3_000;
let two: bigint | undefined;

/** Computes log(2) = 18 atanh(1/26) − 2 atanh(1/4801) + 8 atanh(1/8749). */
function computeLogTwo(bits: number): bigint {
  two ??= 18n * computeInverseAtanh(26n) - 2n * computeInverseAtanh(4801n) + 8n * computeInverseAtanh(8749n);
  return two >> BigInt(TWO_BITS - bits);
}

function computeInverseAtanh(x: bigint): bigint {
  let power = (1n << BigInt(TWO_BITS)) / x;
  let sum = power;
  for (let count = 3n; power !== 0n; count += 2n) {
    power /= x * x;
    sum += power / count;
  }
  return sum;
}

/** Adds `error`, in units of the last bit, to the magnitude, and returns the nearest decimal of 60 significant digits. */
function toRounded({ mantissa, bits }: Fixed, error: bigint): Rounded {
  if (mantissa < 0n) {
    const positive = positiveDecimal({ mantissa: error - mantissa, bits });
    return { ...positive, mantissa: -positive.mantissa };
  }
  return positiveDecimal({ mantissa: mantissa + error, bits });
}

function positiveDecimal({ mantissa, bits }: Fixed): Rounded {
  if (bits < 0) return positiveDecimal({ mantissa: mantissa << BigInt(-bits), bits: 0 });
  const digits = Math.floor((bitLength(mantissa) - bits) / BITS_PER_DIGIT);
  // Scales to two or three digits more than the result has; `significant` rounds them away.
  const places = SIGNIFICANT_DIGITS + 2 - digits;
  const scaled = places >= 0 ? mantissa * toPowerOfTen(places) : mantissa / toPowerOfTen(-places);
  return significant(scaled >> BigInt(bits), places);
}

function significant(mantissa: bigint, scale: number): Rounded {
  const spare = decimalDigits(mantissa) - SIGNIFICANT_DIGITS;
  if (spare <= 0) return { mantissa, scale };
  return { mantissa: divideRounded(mantissa, toPowerOfTen(spare)), scale: scale - spare };
}

function toFixedPoint(value: number, bits: number): bigint {
  return BigInt(Math.round(value * 2 ** 52)) << BigInt(bits - 52);
}

function toDouble(mantissa: bigint, bits: number): number {
  return Number(mantissa >> BigInt(bits - 60)) / 2 ** 60;
}

/** The logarithm as a double, to estimate the size of a power. */
function roughLogarithm(value: Exact): number {
  const distance = toMantissa(value) - toPowerOfTen(value.scale);
  const length = bitLength(distance) - bitLength(toPowerOfTen(value.scale));
  // For a number close to 1, the logarithm is nearly the distance from 1, which a double of the number itself could not represent.
  if (length < -20) return approximate(toExact(distance, value.scale));
  const mantissa = toMantissa(value);
  const spare = Math.max(0, bitLength(mantissa) - 60);
  return Math.log(Number(mantissa >> BigInt(spare))) + spare * Math.LN2 - value.scale * Math.LN10;
}

/**
 * A double, or an infinity if the value exceeds the doubles. One factor combines the powers of two and ten, because
 * either alone may overflow.
 */
function approximate({ small, scale, big }: Exact): number {
  if (big === undefined) return small * 2 ** (-scale * BITS_PER_DIGIT);
  const spare = Math.max(0, bitLength(big) - 60);
  return Number(big >> BigInt(spare)) * 2 ** (spare - scale * BITS_PER_DIGIT);
}

function bitLength(value: bigint): number {
  const hex = (value < 0n ? -value : value).toString(16);
  return hex === '0' ? 0 : 4 * hex.length - Math.clz32(Number.parseInt(hex[0]!, 16)) + 28;
}

/** Number of digits of an integer. Estimating from the bits is faster than writing the number out. */
export function decimalDigits(value: bigint): number {
  const magnitude = value < 0n ? -value : value;
  let digits = Math.max(1, Math.floor((bitLength(magnitude) - 1) / BITS_PER_DIGIT));
  while (magnitude >= toPowerOfTen(digits)) digits++;
  return digits;
}
