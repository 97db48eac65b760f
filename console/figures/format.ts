/**
 * Formats money, quantities and instants. Amounts are decimal strings from end to end: `Intl.NumberFormat` takes the string itself, so no
 * digit passes through a floating-point number.
 */
import type { Language } from '../texts/texts.ts';

const LOCALES: Record<Language, string> = { en: 'en-US', de: 'de-DE' };

/** More digits than any price or quantity of the API has. */
const DIGITS_MAX = 30;

export function findLocale(language: Language): string {
  return LOCALES[language];
}

const formats = new Map<string, Intl.NumberFormat>();

function numberFormat(language: Language, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = `${language}:${JSON.stringify(options)}`;
  const found = formats.get(key) ?? new Intl.NumberFormat(LOCALES[language], options);
  formats.set(key, found);
  return found;
}

/** Digits after the point that a currency has by ISO 4217; what is no currency has none. */
export function countMinorDigits(currency: string): number {
  try {
    const { maximumFractionDigits } = numberFormat('en', { style: 'currency', currency }).resolvedOptions();
    return maximumFractionDigits ?? 2;
  } catch {
    return 0;
  }
}

/** `text` must be a plain decimal number, as the API writes it. */
function toExact(text: string): Intl.StringNumericLiteral {
  return text as Intl.StringNumericLiteral;
}

export type FigureParts = {
  readonly sign: string;
  readonly symbol: string;
  readonly major: string;
  readonly minor: string;
  readonly isSymbolLast: boolean;
};

/**
 * Parts of an amount of money: the sign (a true minus), the symbol of the currency (empty without `currency`), the whole units with their
 * groups, and the rest with its point. An amount with more digits than the currency has shows all of them.
 */
export function splitMoney(language: Language, amount: string, currency: string | null): FigureParts {
  const digits = currency === null ? 2 : countMinorDigits(currency);
  const fraction = /\.(\d*?)0*$/.exec(amount)?.[1]?.length ?? 0;
  const options = {
    minimumFractionDigits: digits,
    maximumFractionDigits: Math.min(Math.max(digits, fraction), DIGITS_MAX),
  };
  const isIso = currency !== null && isCurrency(currency);
  const format = numberFormat(
    language,
    isIso ? { ...options, style: 'currency', currency, currencyDisplay: 'narrowSymbol' } : options,
  );
  const parts = format.formatToParts(toExact(amount));
  const join = (...types: Intl.NumberFormatPartTypes[]) =>
    parts
      .filter(({ type }) => types.includes(type))
      .map(({ value }) => value)
      .join('');
  const at = (type: Intl.NumberFormatPartTypes) => parts.findIndex((part) => part.type === type);
  return {
    sign: join('minusSign') === '' ? '' : '−',
    symbol: isIso ? join('currency') : (currency ?? ''),
    major: join('integer', 'group'),
    minor: join('decimal', 'fraction'),
    isSymbolLast: isIso ? at('currency') > at('integer') : true,
  };
}

export function formatMoney(language: Language, amount: string, currency: string | null): string {
  const { sign, symbol, major, minor, isSymbolLast } = splitMoney(language, amount, currency);
  if (symbol === '') return `${sign}${major}${minor}`;
  return isSymbolLast ? `${sign}${major}${minor} ${symbol}` : `${sign}${symbol}${major}${minor}`;
}

/** All digits of a quantity, in groups. */
export function formatQuantity(language: Language, quantity: string): string {
  return numberFormat(language, { maximumFractionDigits: DIGITS_MAX }).format(toExact(quantity)).replace('-', '−');
}

/** A short form for axes, never for a figure that somebody may copy: 1.2 B. */
export function formatAxis(language: Language, value: number): string {
  return numberFormat(language, { notation: 'compact', maximumFractionDigits: 1 }).format(value);
}

export function formatCount(language: Language, count: number): string {
  return numberFormat(language, {}).format(count);
}

function isCurrency(code: string): boolean {
  return /^[a-z]{3}$/i.test(code);
}

export type Zone = string;

/** A day in the zone of the environment: 1 Nov 2026. */
export function formatDay(language: Language, instant: string, zone: Zone): string {
  return dateFormat(language, { day: 'numeric', month: 'short', year: 'numeric', timeZone: zone }).format(
    new Date(instant),
  );
}

/** Day and time to the minute. */
export function formatInstant(language: Language, instant: string, zone: Zone): string {
  return dateFormat(language, {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    timeZone: zone,
  }).format(new Date(instant));
}

/** The time of a day to the millisecond. */
export function formatTime(language: Language, instant: string, zone: Zone): string {
  return dateFormat(language, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    hourCycle: 'h23',
    timeZone: zone,
  }).format(new Date(instant));
}

/** Day and time to the second, without the year. */
export function formatSecond(language: Language, instant: string, zone: Zone): string {
  const text = dateFormat(language, {
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZone: zone,
  }).format(new Date(instant));
  return text.replace(/,? at |, /, ' ');
}

export function isSameDay(a: Date, b: Date, zone: Zone): boolean {
  const format = dateFormat('en', { day: 'numeric', month: 'numeric', year: 'numeric', timeZone: zone });
  return format.format(a) === format.format(b);
}

/** A half-open period by its first and its last day: "1 – 30 Nov 2026" for [1 November, 1 December). */
export function formatPeriod(language: Language, start: string, end: string, zone: Zone): string {
  const last = new Date(Math.max(new Date(end).getTime() - 1, new Date(start).getTime()));
  return dateFormat(language, { day: 'numeric', month: 'short', year: 'numeric', timeZone: zone }).formatRange(
    new Date(start),
    last,
  );
}

const dateFormats = new Map<string, Intl.DateTimeFormat>();

function dateFormat(language: Language, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${language}:${JSON.stringify(options)}`;
  const found =
    dateFormats.get(key) ?? new Intl.DateTimeFormat(language === 'en' ? 'en-GB' : LOCALES[language], options);
  dateFormats.set(key, found);
  return found;
}
