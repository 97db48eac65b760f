/**
 * Converts between credits and money (docs/rules/wallets.md, "Credits and money"). A credit is `conversion_rate` units of the currency and
 * has at most 12 decimals. Money is converted to credits rounded up, both when credits are added and when they pay. So an added amount of
 * money can pay an equal amount, never a minor unit less.
 */
import { Decimal, type DecimalInput } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { MAX_FRACTION_DIGITS, minorUnits } from '../../foundation/money.ts';

export const CREDIT_DECIMALS = 12;

/** Money value of the credits, with the maximum precision of an amount. */
export function toMoney(credits: DecimalInput, rate: DecimalInput): Decimal {
  return new Decimal(credits).times(rate).toDecimalPlaces(MAX_FRACTION_DIGITS, Decimal.ROUND_HALF_UP);
}

export function toCredits(amount: DecimalInput, rate: DecimalInput): Decimal {
  return new Decimal(amount).dividedBy(rate).toDecimalPlaces(CREDIT_DECIMALS, Decimal.ROUND_UP);
}

/** Money that the credits can pay, rounded down to the minor unit of the currency. */
export function computePayableMoney(credits: Decimal, rate: DecimalInput, currency: string): Decimal {
  // The exact product is rounded down: a product that was rounded up before could reach a minor unit that the credits cannot pay.
  return credits.times(rate).toDecimalPlaces(minorUnits(currency), Decimal.ROUND_DOWN);
}

export function checkCredits(field: string, credits: DecimalInput): Decimal {
  const value = new Decimal(credits);
  if (value.lte(0)) throw invalid(field, 'must be more than 0');
  if (value.decimalPlaces() > CREDIT_DECIMALS) throw invalid(field, `has more than ${CREDIT_DECIMALS} decimals`);
  return value;
}
