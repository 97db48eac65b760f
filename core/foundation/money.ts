/**
 * Rounds and displays money (docs/rules/numbers.md, "Rounding money"). Decimals of a currency are those of ISO 4217 (`currency-codes`; Intl
 * differs for some). Each invoice line is rounded first, then the lines are summed.
 */
import currencyCodes from 'currency-codes';
import { Decimal, type DecimalInput } from './decimal.ts';
import { invalid } from './error.ts';

/** Rounds half away from zero to the currency's minor unit, for positive and negative amounts alike. */
export function roundMoney(amount: DecimalInput, currency: string): Decimal {
  const rounded = new Decimal(amount).toDecimalPlaces(minorUnits(currency), Decimal.ROUND_HALF_UP);
  return withoutNegativeZero(rounded);
}

/** Decimals of the currency's minor unit: 2 for usd, 0 for jpy, 3 for bhd. */
export function minorUnits(currency: string): number {
  const known = findCurrency(currency);
  if (known === undefined) throw invalid('currency', `${JSON.stringify(currency)} is not an ISO 4217 currency`);
  return known.digits;
}

/** Currency code as it is stored (lower case). An unknown code is a validation error that names the field. */
export function checkCurrency(currency: string, field = 'currency'): string {
  if (findCurrency(currency) === undefined)
    throw invalid(field, `${JSON.stringify(currency)} is not an ISO 4217 currency`);
  return currency.toLowerCase();
}

/** Symbol and amount: "$12.50", with every digit of a sub-cent unit price ("$0.000125"). */
export function displayAmount(amount: DecimalInput, currency: string): string {
  return withSymbol(amount, findSymbol(currency), minorUnits(currency));
}

/** Like `displayAmount`, for custom price units: they have a symbol of their own and no minor unit. */
export function withSymbol(amount: DecimalInput, symbol: string, decimalsAtLeast = 0): string {
  const value = new Decimal(amount);
  const digits = value.abs().toFixed(Math.max(decimalsAtLeast, value.decimalPlaces()));
  const gap = /\p{L}$/u.test(symbol) ? ' ' : '';
  return `${value.isNegative() && !value.isZero() ? '-' : ''}${symbol}${gap}${digits}`;
}

/**
 * Maximum digits of an amount or quantity before and after the point. A product of two such values is exact at 60 digits except for its
 * last places, far below any minor unit. The limits bound the size of every parsed number.
 */
export const MAX_INTEGER_DIGITS = 20;
export const MAX_FRACTION_DIGITS = 18;
const DECIMAL_TEXT = /^-?(\d+)(?:\.(\d+))?$/;

/** Parses strict decimal text: digits with at most one point and an optional minus. Returns undefined for any other text. */
export function parseDecimal(text: string): Decimal | undefined {
  const parts = DECIMAL_TEXT.exec(text);
  if (parts === null) return undefined;
  const integerDigits = (parts[1] ?? '').replace(/^0+/, '').length;
  const fractionDigits = (parts[2] ?? '').replace(/0+$/, '').length;
  if (integerDigits > MAX_INTEGER_DIGITS || fractionDigits > MAX_FRACTION_DIGITS) return undefined;
  return withoutNegativeZero(new Decimal(text));
}

/** Replaces -0, which JSON would show as "-0". */
function withoutNegativeZero(value: Decimal): Decimal {
  return value.isZero() ? value.abs() : value;
}

/** Currencies that ISO 4217 lists with the minor unit "N.A.". Amounts cannot be rounded to a minor unit, so nothing is billed in them. */
const NO_MINOR_UNIT = new Set('XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XTS XUA XXX'.split(' '));

/** Currencies that the list of the package lacks, because they came into force on 2025-03-31, after the list was published. */
const NEWER_CURRENCIES: ReadonlyMap<string, { digits: number }> = new Map([['XCG', { digits: 2 }]]);

/** Currencies that were found. They are cached, because the package searches its list and few currencies are used often. */
const found = new Map<string, { digits: number }>();

function findCurrency(currency: string): { digits: number } | undefined {
  const known = found.get(currency);
  if (known) return known;
  const code = currency.toUpperCase();
  if (!/^[A-Z]{3}$/.test(code) || NO_MINOR_UNIT.has(code)) return undefined;
  const one = currencyCodes.code(code) ?? NEWER_CURRENCIES.get(code);
  if (one) found.set(currency, one);
  return one;
}

const symbols = new Map<string, string>();

/** Intl provides only the symbol. "CA$" and "A$" distinguish currencies that share "$". */
function findSymbol(currency: string, currencyDisplay: 'symbol' | 'narrowSymbol' = 'symbol'): string {
  const code = currency.toUpperCase();
  const key = `${code} ${currencyDisplay}`;
  let symbol = symbols.get(key);
  if (symbol === undefined) {
    const writing = new Intl.NumberFormat('en-US', { style: 'currency', currency: code, currencyDisplay });
    symbol = writing.formatToParts(0).find((part) => part.type === 'currency')?.value ?? code;
    symbols.set(key, symbol);
  }
  return symbol;
}

/** Symbol used in the country of the currency: "$" for several currencies, "฿", "₹". The code if there is none. */
export function findNarrowSymbol(currency: string): string {
  return findSymbol(currency, 'narrowSymbol');
}
