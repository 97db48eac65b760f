/**
 * Languages of invoice documents, with their number, amount and date formats. Formats of Intl change with the version of Node; these do
 * not, so a repeated rendering has equal bytes (docs/rules/documents.md, "The same bytes").
 */
import { type Decimal, Decimal as Decimals } from '../../foundation/decimal.ts';
import { findNarrowSymbol, minorUnits } from '../../foundation/money.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import { toLocalMs } from '../../foundation/time/zone.ts';
import { de } from './translations/de.ts';
import { el } from './translations/el.ts';
import { en } from './translations/en.ts';
import { es } from './translations/es.ts';
import { fr } from './translations/fr.ts';
import { it } from './translations/it.ts';
import { nl } from './translations/nl.ts';
import { pl } from './translations/pl.ts';
import { pt } from './translations/pt.ts';
import { sv } from './translations/sv.ts';
import { uk } from './translations/uk.ts';
import type { Translations } from './translations.ts';

export const LANGUAGES = ['en', 'de', 'el', 'es', 'fr', 'it', 'nl', 'pl', 'pt', 'sv', 'uk'] as const;
export type DocumentLanguage = (typeof LANGUAGES)[number];

const TRANSLATIONS: Readonly<Record<DocumentLanguage, Translations>> = { en, de, el, es, fr, it, nl, pl, pt, sv, uk };

type LanguageFormat = {
  /** Decimal point and thousands separator. */
  readonly point: string;
  readonly thousands: string;
  /** Position of the currency sign: `$1` or `1 $`. */
  readonly sign: 'before' | 'after';
  readonly day: (day: string, month: string, year: string) => string;
};

const NO_BREAK = '\u00a0';
const dotted = (day: string, month: string, year: string) => `${day}.${month}.${year}`;
const slashed = (day: string, month: string, year: string) => `${day}/${month}/${year}`;
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const english = (day: string, month: string, year: string) => `${Number(day)} ${MONTHS[Number(month) - 1]} ${year}`;

const comma = { point: ',', thousands: '.', sign: 'after' } as const;
const commaAndSpace = { point: ',', thousands: NO_BREAK, sign: 'after' } as const;

const LANGUAGE_FORMATS: Readonly<Record<DocumentLanguage, LanguageFormat>> = {
  en: { point: '.', thousands: ',', sign: 'before', day: english },
  de: { ...comma, day: dotted },
  el: { ...comma, day: slashed },
  es: { ...comma, day: slashed },
  fr: { ...commaAndSpace, day: slashed },
  it: { ...comma, day: slashed },
  nl: { ...comma, sign: 'before', day: (day, month, year) => `${day}-${month}-${year}` },
  pl: { ...commaAndSpace, day: dotted },
  pt: { ...comma, day: slashed },
  sv: { ...commaAndSpace, day: (day, month, year) => `${year}-${month}-${day}` },
  uk: { ...commaAndSpace, day: dotted },
};

export function selectTranslations(language: DocumentLanguage): Translations {
  return TRANSLATIONS[language];
}

/** Shows all digits, with at least `least` decimals. */
export function showNumber(value: Decimal | string, language: DocumentLanguage, least = 0): string {
  const number = new Decimals(value);
  const { point, thousands } = LANGUAGE_FORMATS[language];
  const [whole = '0', parts] = number.abs().toFixed(Math.max(least, number.decimalPlaces())).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, thousands);
  const minus = number.isNegative() && !number.isZero() ? '−' : '';
  return `${minus}${grouped}${parts === undefined ? '' : point + parts}`;
}

/** Formats an amount without its currency, which is in the heading of the column. */
export function showAmount(amount: Decimal | string, currency: string, language: DocumentLanguage): string {
  return showNumber(amount, language, minorUnits(currency));
}

/** Formats an amount with the currency sign and the code, because several currencies share a sign. */
export function showMoney(amount: Decimal | string, currency: string, language: DocumentLanguage): string {
  const number = showAmount(amount, currency, language);
  const code = currency.toUpperCase();
  const sign = findNarrowSymbol(currency);
  if (sign === code) return `${number}${NO_BREAK}${code}`;
  if (LANGUAGE_FORMATS[language].sign === 'after') return `${number}${NO_BREAK}${sign}${NO_BREAK}${code}`;
  const gap = /\p{L}$/u.test(sign) ? NO_BREAK : '';
  const [minus, digits] = number.startsWith('−') ? ['−', number.slice(1)] : ['', number];
  return `${minus}${sign}${gap}${digits}${NO_BREAK}${code}`;
}

/** Calendar day that contains the instant. */
export function showDay(instant: Milliseconds, timezone: string, language: DocumentLanguage): string {
  const [year = '', month = '', day = ''] = new Date(toLocalMs(timezone, instant))
    .toISOString()
    .slice(0, 10)
    .split('-');
  return LANGUAGE_FORMATS[language].day(day, month, year);
}

/** Shows the first and the last day of a half-open interval. The last day is that of the interval's last millisecond. */
export function showPeriod(
  { start, end }: { start: Milliseconds; end: Milliseconds },
  timezone: string,
  language: DocumentLanguage,
): string {
  const first = showDay(start, timezone, language);
  const last = showDay(Math.max(start, end - 1), timezone, language);
  return first === last ? first : `${first} – ${last}`;
}
