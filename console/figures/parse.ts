/**
 * Parses the numbers that people type: with the groups and the point of their language, and words for sizes ("1.2 billion", "5k").
 * The result is the exact decimal string. A text that two languages read differently, as "1.022" in German, has two readings, and the
 * form asks which one is meant.
 */
import type { Language } from '../texts/texts.ts';

export type ParsedNumber =
  | { readonly kind: 'empty' }
  | { readonly kind: 'invalid' }
  | { readonly kind: 'number'; readonly value: string }
  | { readonly kind: 'ambiguous'; readonly readings: readonly [string, string] };

const POWERS: Record<string, number> = {
  k: 3,
  thousand: 3,
  tsd: 3,
  tausend: 3,
  m: 6,
  mio: 6,
  million: 6,
  millions: 6,
  millionen: 6,
  b: 9,
  bn: 9,
  billion: 9,
  billions: 9,
  mrd: 9,
  milliarde: 9,
  milliarden: 9,
};

/** `billion` is 10⁹ in English and 10¹² in German. */
const GERMAN_POWERS: Record<string, number> = { ...POWERS, billion: 12, billionen: 12 };

export function parseNumber(text: string, language: Language): ParsedNumber {
  const compact = text.trim().replaceAll(/[\s\u00a0\u202f'’_]/g, '');
  if (compact === '') return { kind: 'empty' };
  const [, sign, digits, word] = /^([-−+]?)([\d.,]*\d[\d.,]*)(\p{L}*)\.?$/u.exec(compact) ?? [];
  if (digits === undefined || word === undefined) return { kind: 'invalid' };
  const power = word === '' ? 0 : (language === 'de' ? GERMAN_POWERS : POWERS)[word.toLowerCase()];
  if (power === undefined) return { kind: 'invalid' };
  const finish = (plain: string) => `${sign === '-' || sign === '−' ? '-' : ''}${shiftPoint(plain, power)}`;
  const readings = readDigits(digits, language).map(finish);
  const [first, second] = readings;
  if (first === undefined) return { kind: 'invalid' };
  if (second === undefined || second === first) return { kind: 'number', value: first };
  return { kind: 'ambiguous', readings: [first, second] };
}

/** All readings of digits with points and commas, that of the language first. Groups must have three digits. */
function readDigits(digits: string, language: Language): string[] {
  const [point, group] = language === 'de' ? [',', '.'] : ['.', ','];
  const own = readWith(digits, point, group);
  // A single group mark of the language that its point could be elsewhere: "1.022" in German, "1,022" in English is plain.
  const isDoubtful = language === 'de' && /^\d{1,3}\.\d{3}$/.test(digits);
  const foreign = own === null || isDoubtful ? readWith(digits, group, point) : null;
  return [own, foreign].filter((reading) => reading !== null);
}

function readWith(digits: string, point: string, group: string): string | null {
  const [whole = '', fraction, ...rest] = digits.split(point);
  if (rest.length > 0 || fraction?.includes(group)) return null;
  const groups = whole.split(group);
  if (
    groups.length > 1 &&
    !(groups[0]!.length <= 3 && groups[0] !== '' && groups.slice(1).every(({ length }) => length === 3))
  )
    return null;
  const joined = groups.join('') || '0';
  return fraction ? `${joined}.${fraction}` : joined;
}

/** `text` × 10^power, on the digits themselves. */
function shiftPoint(text: string, power: number): string {
  const [whole = '0', fraction = ''] = text.split('.');
  const padded = fraction.padEnd(power, '0');
  const integer = `${whole}${padded.slice(0, power)}`.replace(/^0+(?=\d)/, '');
  const rest = padded.slice(power).replace(/0+$/, '');
  return rest === '' ? integer : `${integer}.${rest}`;
}
