/**
 * Amounts of Razorpay are integers in the smallest unit of the currency. A currency with decimals has a minimum of 100 units; in one with
 * three decimals the last must be 0 (razorpay.com/docs/payments/international-payments, "Supported currencies").
 */
import { fromMinorInteger, HUNDREDTHS, hasHundredths, type MinorUnit, toMinorInteger } from '../minor-units.ts';
import { ProviderError } from '../provider-error.ts';

const AMOUNT_MIN = 100;
const THOUSANDTHS: MinorUnit = { digits: 3, step: 10 };
const SPECIAL_UNITS: ReadonlyMap<string, MinorUnit> = new Map([
  ['jpy', { digits: 0, step: 1 }],
  ...['kwd', 'bhd', 'omr'].map((currency) => [currency, THOUSANDTHS] as const),
]);

/** Throws if Razorpay has no such currency or cannot represent the amount. */
export function toSubunits(amount: string, currency: string): number {
  return toMinorInteger(amount, { currency, unit: findUnit(currency), provider_name: 'Razorpay' });
}

/** Converts an amount to be paid. Throws if it is below Razorpay's minimum. */
export function toPayableSubunits(amount: string, currency: string): number {
  const integer = toSubunits(amount, currency);
  const unit = findUnit(currency);
  const min = unit.digits === 0 ? 1 : AMOUNT_MIN;
  if (integer < min)
    throw new ProviderError(
      'person',
      `Razorpay collects at least ${fromMinorInteger(min, unit)} ${currency}, not ${amount}`,
    );
  return integer;
}

export function fromSubunits(integer: number, currency: string): string {
  return fromMinorInteger(integer, findUnit(currency));
}

/** Finds the unit of a currency. A currency without two decimals is refused unless its unit is documented. */
function findUnit(currency: string): MinorUnit {
  const lower = currency.toLowerCase();
  const special = SPECIAL_UNITS.get(lower);
  if (special !== undefined) return special;
  if (hasHundredths(lower)) return HUNDREDTHS;
  throw new ProviderError('person', `Razorpay has no unit for amounts in ${lower}`);
}
