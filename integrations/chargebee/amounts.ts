/**
 * Amounts of Chargebee (apidocs.chargebee.com, "Currencies"): hundredths, also of currencies with three decimals, and
 * whole units of the zero-decimal currencies that Chargebee names. Other currencies without hundredths are refused,
 * because a wrong unit would change an amount a hundredfold.
 */
import { minorUnits } from '../../core/foundation/money.ts';
import { fromMinorInteger, HUNDREDTHS, type MinorUnit, toMinorInteger } from '../minor-units.ts';
import { ProviderError } from '../provider-error.ts';

const WHOLE: MinorUnit = { digits: 0, step: 1 };
const ZERO_DECIMAL = new Set(['jpy', 'krw', 'xaf', 'xof']);

/** Throws if Chargebee has no such currency or cannot represent the amount. */
export function toCents(amount: string, currency: string): number {
  return toMinorInteger(amount, { currency, unit: findUnit(currency), provider_name: 'Chargebee' });
}

/** `cents` is an integer of Chargebee, as a number or as the text of an answer; absent means 0. */
export function fromCents(cents: string | number | undefined, currency_code: string): string {
  return fromMinorInteger(toInteger(cents), findUnit(currency_code.toLowerCase()));
}

export function toInteger(text: string | number = 0): number {
  const integer = Number(text);
  if (!Number.isSafeInteger(integer))
    throw new ProviderError('person', `${JSON.stringify(text)} is no amount of Chargebee`);
  return integer;
}

function findUnit(currency: string): MinorUnit {
  if (ZERO_DECIMAL.has(currency)) return WHOLE;
  const digits = findDigits(currency);
  if (digits === 2 || digits === 3) return HUNDREDTHS;
  throw new ProviderError('person', `${currency} is not supported with Chargebee: its unit is not documented`);
}

function findDigits(currency: string): number | null {
  try {
    return minorUnits(currency);
  } catch {
    return null;
  }
}
