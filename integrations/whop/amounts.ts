/** Amounts of Whop are JSON numbers in units of the currency, such as 10.43 (docs.whop.com/api-reference/invoices/create-invoice). */
import { Decimal } from '../../core/foundation/decimal.ts';
import { minorUnits, parseDecimal } from '../../core/foundation/money.ts';
import { JsonNumber } from '../exact-json.ts';
import { ProviderError } from '../provider-error.ts';

/** Throws if the amount has more decimals than the currency: Whop would round it. */
export function toWhopAmount(amount: string, currency: string): JsonNumber {
  const value = parseDecimal(amount);
  const digits = findDigits(currency);
  if (value === undefined || value.decimalPlaces() > digits)
    throw new ProviderError('person', `Whop cannot represent ${amount} ${currency}: it has ${digits} decimals`);
  return new JsonNumber(value.toFixed());
}

function findDigits(currency: string): number {
  try {
    return minorUnits(currency);
  } catch {
    throw new ProviderError('person', `Whop has no amounts in ${currency}`);
  }
}

/** Reads an amount of an answer; null counts as 0. */
export function fromWhopAmount(amount: string | null | undefined): Decimal {
  return new Decimal(amount ?? '0');
}
