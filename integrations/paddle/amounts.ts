/**
 * Amounts of Paddle are texts of integers in the lowest denomination of their currency
 * (developer.paddle.com/api-reference/about/data-types, "Money"), which is the minor unit of ISO 4217.
 */
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { minorUnits } from '../../core/foundation/money.ts';
import { toMinorInteger } from '../minor-units.ts';
import { ProviderError } from '../provider-error.ts';

/** Currencies of Paddle (developer.paddle.com/concepts/sell/supported-currencies). */
const CURRENCIES: ReadonlySet<string> = new Set(
  (
    'usd eur gbp jpy aud cad chf clp hkd sgd sek ars brl cny cop czk dkk huf ils inr krw mxn nok nzd pen pln rub thb ' +
    'try twd uah vnd zar'
  ).split(' '),
);

/** Currencies of invoices that a customer may pay by bank transfer; others are paid on a page. */
const INVOICE_CURRENCIES: ReadonlySet<string> = new Set(['usd', 'eur', 'gbp']);

export function isInvoiceCurrency(currency: string): boolean {
  return INVOICE_CURRENCIES.has(currency.toLowerCase());
}

/** Whether Paddle has amounts in the currency. */
export function hasCurrency(currency: string): boolean {
  return CURRENCIES.has(currency.toLowerCase());
}

/** Throws if Paddle has no such currency or cannot represent the amount. */
export function toLowest(amount: string, currency: string): number {
  const unit = { digits: findDigits(currency), step: 1 };
  return toMinorInteger(amount, { currency, unit, provider_name: 'Paddle' });
}

export function fromLowest(lowest: string | Decimal, currency: string): string {
  return new Decimal(lowest).div(new Decimal(10).pow(findDigits(currency))).toFixed();
}

export function sumLowest(amounts: readonly string[]): Decimal {
  return sumDecimals(amounts.map((amount) => new Decimal(amount)));
}

function findDigits(currency: string): number {
  const lower = currency.toLowerCase();
  if (!hasCurrency(lower)) throw new ProviderError('person', `Paddle has no amounts in ${lower}`);
  return minorUnits(lower);
}
