/**
 * Converts amounts to Stripe's integers, whose unit depends on the currency (docs.stripe.com/currencies, "Minor units
 * in API amounts" and "Special cases"). An amount that is no multiple of the unit is refused, because rounded lines
 * would make two totals differ.
 */
import { fromMinorInteger, HUNDREDTHS, hasHundredths, type MinorUnit, toMinorInteger } from '../minor-units.ts';
import { ProviderError } from '../provider-error.ts';

const WHOLE: MinorUnit = { digits: 0, step: 1 };
/** Unit of currencies with three decimals, of which the last must be 0. */
const THOUSANDTHS: MinorUnit = { digits: 3, step: 10 };
/** Unit of currencies without decimals for which Stripe expects two, which must be 0. */
const WHOLE_AS_HUNDREDTHS: MinorUnit = { digits: 2, step: 100 };

const SPECIAL_UNITS: readonly (readonly [MinorUnit, string])[] = [
  [WHOLE, 'bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'],
  [THOUSANDTHS, 'bhd jod kwd omr tnd'],
  [WHOLE_AS_HUNDREDTHS, 'isk ugx'],
];
const UNIT_BY_CURRENCY: ReadonlyMap<string, MinorUnit> = new Map(
  SPECIAL_UNITS.flatMap(([unit, currencies]) => currencies.split(' ').map((currency) => [currency, unit] as const)),
);

/** Throws if Stripe has no such currency or cannot represent the amount. */
export function toMinorUnits(amount: string, currency: string): number {
  return toMinorInteger(amount, { currency, unit: findUnit(currency), provider_name: 'Stripe' });
}

export function fromMinorUnits(integer: number, currency: string): string {
  return fromMinorInteger(integer, findUnit(currency));
}

/**
 * Finds the unit of a currency. Currencies with 3 or 4 decimals whose unit Stripe does not document, such as iqd and
 * clf, are refused.
 */
function findUnit(currency: string): MinorUnit {
  const special = UNIT_BY_CURRENCY.get(currency.toLowerCase());
  if (special !== undefined) return special;
  if (hasHundredths(currency)) return HUNDREDTHS;
  throw new ProviderError('person', `Stripe has no unit for amounts in ${currency}`);
}
