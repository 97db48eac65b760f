/**
 * Amounts of Moyasar are integers in the smallest unit of the currency: 1.00 SAR is 100, 1.000 KWD is 1000, 1 JPY is 1
 * (docs.moyasar.com/api/invoices/01-create-invoice).
 */
import { minorUnits } from '../../core/foundation/money.ts';
import { fromMinorInteger, type MinorUnit, toMinorInteger } from '../minor-units.ts';
import { ProviderError } from '../provider-error.ts';

/** Smallest amount of an invoice or payment, in any currency. */
const AMOUNT_MIN = 100;

export function toSmallestUnits(amount: string, currency: string): number {
  return toMinorInteger(amount, { currency, unit: findUnit(currency), provider_name: 'Moyasar' });
}

/** Converts an amount to be paid. Throws if it is below Moyasar's minimum. */
export function toPayableUnits(amount: string, currency: string): number {
  const integer = toSmallestUnits(amount, currency);
  if (integer >= AMOUNT_MIN) return integer;
  const least = fromMinorInteger(AMOUNT_MIN, findUnit(currency));
  throw new ProviderError('person', `Moyasar collects at least ${least} ${currency}, not ${amount}`);
}

export function fromSmallestUnits(integer: string | number, currency: string): string {
  return fromMinorInteger(Number(integer), findUnit(currency));
}

function findUnit(currency: string): MinorUnit {
  try {
    return { digits: minorUnits(currency), step: 1 };
  } catch {
    throw new ProviderError('person', `Moyasar has no unit for amounts in ${currency}`);
  }
}
