/**
 * Price units are currencies that a tenant defines: amount in the unit × conversion_rate = amount in the base currency. A
 * unit has a code of 2 to 12 characters and a rate greater than 0.
 */
import { Decimal, type DecimalInput } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { checkCurrency, parseDecimal } from '../../foundation/money.ts';

export function priceUnitToFiat(amount: DecimalInput, conversion_rate: DecimalInput): Decimal {
  return new Decimal(amount).times(conversion_rate);
}

export function priceUnitFromFiat(amount: DecimalInput, conversion_rate: DecimalInput): Decimal {
  const rate = new Decimal(conversion_rate);
  if (!rate.gt(0)) throw invalid('conversion_rate', 'must be greater than 0');
  return new Decimal(amount).div(rate);
}

export function checkPriceUnit(unit: { code: string; base_currency: string; conversion_rate: string }): void {
  if (!/^[A-Za-z0-9_-]{2,12}$/.test(unit.code))
    throw invalid('code', 'must be 2 to 12 letters, digits, underscores or hyphens');
  checkCurrency(unit.base_currency, 'base_currency');
  const rate = parseDecimal(unit.conversion_rate);
  if (rate === undefined || !rate.gt(0)) throw invalid('conversion_rate', 'must be decimal text greater than 0');
}
