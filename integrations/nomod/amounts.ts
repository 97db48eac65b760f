/** Amounts of Nomod are decimal texts with the decimals of the currency, such as `12.30` (nomod.com/docs/api-reference/generate-invoice). */
import { Decimal } from '../../core/foundation/decimal.ts';
import { minorUnits, parseDecimal } from '../../core/foundation/money.ts';
import { ProviderError } from '../provider-error.ts';

/** Throws if the amount is not positive or has more decimals than the currency. */
export function toNomodAmount(amount: string, currency: string): string {
  const digits = findDigits(currency);
  const value = parseDecimal(amount);
  if (value === undefined || value.lte(0))
    throw new ProviderError('person', `Nomod collects amounts above 0, not ${amount} ${currency}`);
  if (value.decimalPlaces() > digits)
    throw new ProviderError(
      'person',
      `Nomod cannot represent ${amount} ${currency}: it has more than ${digits} decimals`,
    );
  return value.toFixed(digits);
}

export function fromNomodAmount(amount: string): string {
  return new Decimal(amount).toFixed();
}

function findDigits(currency: string): number {
  try {
    return minorUnits(currency);
  } catch {
    throw new ProviderError('person', `Nomod has no amounts in ${currency}`);
  }
}
