/**
 * Between credits and money (docs/rules/wallets.md, "Credits and money"): a credit is `conversion_rate` units of the currency. Credits
 * have at most 12 decimals. What an amount of money makes of credits is rounded up, when it is put in and when it is taken
 * out: so an amount that is put in pays that amount again, and never a minor unit less.
 */
import { Decimal, type DecimalInput } from '../decimal.ts';
import { invalid } from '../error.ts';
import { MAX_FRACTION_DIGITS, minorUnits } from '../money.ts';

export const CREDIT_DECIMALS = 12;

/** Money of credits, as exact as an amount can be said. */
export function toMoney(credits: DecimalInput, rate: DecimalInput): Decimal {
  return new Decimal(credits).times(rate).toDecimalPlaces(MAX_FRACTION_DIGITS, Decimal.ROUND_HALF_UP);
}

/** The credits that are worth this amount. */
export function toCredits(amount: DecimalInput, rate: DecimalInput): Decimal {
  return new Decimal(amount).dividedBy(rate).toDecimalPlaces(CREDIT_DECIMALS, Decimal.ROUND_UP);
}

/** What the credits can pay: whole minor units. */
export function computePayableMoney(credits: Decimal, rate: DecimalInput, currency: string): Decimal {
  // Of the exact product: what is rounded up first may reach a unit that the credits are not enough for.
  return credits.times(rate).toDecimalPlaces(minorUnits(currency), Decimal.ROUND_DOWN);
}

/** Credits that somebody says. */
export function checkCredits(field: string, credits: DecimalInput): Decimal {
  const value = new Decimal(credits);
  if (value.lte(0)) throw invalid(field, 'must be more than 0');
  if (value.decimalPlaces() > CREDIT_DECIMALS) throw invalid(field, `has more than ${CREDIT_DECIMALS} decimals`);
  return value;
}
