/** Amounts as integers, as most payment providers have them. An amount that a provider cannot represent is refused, never rounded. */
import { Decimal, sumDecimals } from '../core/foundation/decimal.ts';
import { minorUnits, parseDecimal } from '../core/foundation/money.ts';
import { ProviderError } from './provider-error.ts';

export type MinorUnit = {
  /** Number of decimals that the integer contains. */
  readonly digits: number;
  /** Smallest step: the integer must be a multiple of it. */
  readonly step: number;
};

export const HUNDREDTHS: MinorUnit = { digits: 2, step: 1 };

/** Whether the currency has two decimals. For other currencies each provider has its own list. */
export function hasHundredths(currency: string): boolean {
  try {
    return minorUnits(currency) === 2;
  } catch {
    return false;
  }
}

type UnitUse = { readonly currency: string; readonly unit: MinorUnit; readonly provider_name: string };

export function toMinorInteger(amount: string, { currency, unit, provider_name }: UnitUse): number {
  const { digits, step } = unit;
  const value = parseDecimal(amount);
  if (value === undefined) throw new ProviderError('person', `${JSON.stringify(amount)} is not an amount`);
  const integer = value.times(new Decimal(10).pow(digits));
  const nearest = integer.div(step).toDecimalPlaces(0).times(step);
  if (!nearest.equals(integer)) {
    const smallest = new Decimal(step).div(new Decimal(10).pow(digits));
    throw new ProviderError(
      'person',
      `${provider_name} cannot represent ${amount} ${currency}: the smallest amount is ${smallest.toString()}, the nearest ${fromMinorInteger(nearest.toNumber(), unit)}`,
    );
  }
  if (integer.abs().greaterThan(Number.MAX_SAFE_INTEGER))
    throw new ProviderError('person', `${amount} ${currency} is too large for ${provider_name}`);
  return integer.toNumber();
}

export function fromMinorInteger(integer: number, { digits }: MinorUnit): string {
  return new Decimal(String(integer)).div(new Decimal(10).pow(digits)).toString();
}

/** Sums as decimals, because the sum of safe integers may be unsafe. */
export function sumMinorUnits(integers: readonly number[]): Decimal {
  return sumDecimals(integers.map((integer) => new Decimal(String(integer))));
}

type FoldableLine = { readonly amount: number };

/**
 * Joins the lines with the smallest amounts into one at the end if there are more than `max`. The others stay in order.
 */
export function foldSmallestLines<Line extends FoldableLine>(
  lines: readonly Line[],
  max: number,
  build: (folded: { count: number; amount: number }) => Line,
): Line[] {
  if (lines.length <= max) return [...lines];
  const bySize = lines.map((_, index) => index).sort((a, b) => Math.abs(lines[b]!.amount) - Math.abs(lines[a]!.amount));
  const remaining = new Set(bySize.slice(0, max - 1));
  const folded = lines.filter((_, index) => !remaining.has(index));
  const amount = sumMinorUnits(folded.map((line) => line.amount)).toNumber();
  return [...lines.filter((_, index) => remaining.has(index)), build({ count: folded.length, amount })];
}
