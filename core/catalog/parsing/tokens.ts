/**
 * Splits a description of prices into tokens: amounts of money, numbers, percentages, words and signs. "2 cents", "$0.02"
 * and "USD 0.02" are one kind of token, and so are "1,000", "1k" and "one thousand".
 */
import { Decimal } from '../../foundation/decimal.ts';

export type PricingToken = { readonly text: string } & (
  | { readonly kind: 'money'; readonly amount: Decimal; readonly currency: string | null }
  | { readonly kind: 'number' | 'percent'; readonly value: Decimal }
  | { readonly kind: 'word'; readonly word: string }
  | { readonly kind: 'sign'; readonly sign: string }
);

const SYMBOLS: Readonly<Record<string, string>> = {
  us$: 'usd',
  ca$: 'cad',
  c$: 'cad',
  au$: 'aud',
  a$: 'aud',
  nz$: 'nzd',
  '€': 'eur',
  '£': 'gbp',
  '¥': 'jpy',
  '₹': 'inr',
  '₩': 'krw',
};
const CODES = 'usd eur gbp jpy inr aud cad chf cny sek nok dkk pln brl mxn sgd hkd nzd zar krw ils czk huf aed thb';

/**
 * Words after a number that make it an amount. A null currency means the currency of the request; `hundredth` means a
 * hundredth of it.
 */
const MONEY_WORDS: Readonly<Record<string, { currency: string | null; hundredth?: true }>> = {
  cent: { currency: null, hundredth: true },
  cents: { currency: null, hundredth: true },
  '¢': { currency: null, hundredth: true },
  pence: { currency: 'gbp', hundredth: true },
  dollar: { currency: null },
  dollars: { currency: null },
  euro: { currency: 'eur' },
  euros: { currency: 'eur' },
  pound: { currency: 'gbp' },
  pounds: { currency: 'gbp' },
  yen: { currency: 'jpy' },
  rupees: { currency: 'inr' },
  ...Object.fromEntries([...CODES.split(' '), '€', '£'].map((name) => [name, { currency: SYMBOLS[name] ?? name }])),
};

const TIMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    k: '1000',
    thousand: '1000',
    m: '1000000',
    mn: '1000000',
    million: '1000000',
    b: '1000000000',
    bn: '1000000000',
    billion: '1000000000',
  }),
);

const NUMBER_WORDS = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ');

const NUMBER = String.raw`(\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!,?\d)|\d+,\d{1,2}(?!\d)|\d+(?:\.\d+)?|\.\d+)(?:(k|m|b)\b|\s?(thousand|million|billion|mn|bn)\b)?`;
const alternatives = (words: readonly string[]) => words.map((word) => word.replace(/[$]/g, String.raw`\$`)).join('|');
const SYMBOL = alternatives([...Object.keys(SYMBOLS), '$']);
const CODE = CODES.replaceAll(' ', '|');

const FORMS: readonly [RegExp, (match: RegExpExecArray) => PricingToken][] = [
  [new RegExp(String.raw`(${SYMBOL}|(?:${CODE})\b)\s?${NUMBER}`, 'iy'), symbolFirst],
  [new RegExp(String.raw`${NUMBER}[\s-]?(${alternatives(Object.keys(MONEY_WORDS))})(?![\p{L}\p{N}])`, 'iuy'), wordLast],
  [new RegExp(String.raw`${NUMBER}\s?(?:%|percent\b)`, 'iy'), (match) => ({ kind: 'percent', ...valued(match, 1) })],
  [new RegExp(NUMBER, 'iy'), (match) => ({ kind: 'number', ...valued(match, 1) })],
  // No price is negative, so the sign becomes a word and is reported as not understood.
  [/(?<![\p{L}\p{N}]\s?)-(?=[$€£¥₹\d])/uy, ([text]) => ({ kind: 'word', text, word: 'minus' })],
  [/\p{L}[\p{L}\p{N}'’&]*(?:-[\p{L}\p{N}]+)*/uy, wordToken],
  [/\S/uy, ([text]) => ({ kind: 'sign', text, sign: '–—−'.includes(text) ? '-' : text })],
];

export function tokenize(text: string): PricingToken[] {
  // Reads "per-seat" as "per seat".
  const source = text.replace(/\bper-(?=\p{L})/giu, 'per ');
  const tokens: PricingToken[] = [];
  for (let at = skipSpace(source, 0); at < source.length; ) {
    const [token, length] = tokenAt(source, at);
    tokens.push(token);
    at = skipSpace(source, at + length);
  }
  return tokens;
}

function tokenAt(source: string, at: number): [PricingToken, number] {
  for (const [form, make] of FORMS) {
    form.lastIndex = at;
    const match = form.exec(source);
    if (match !== null) return [make(match), match[0].length];
  }
  throw new Error('every character is a token or space');
}

function skipSpace(source: string, from: number): number {
  let at = from;
  while (at < source.length && /\s/u.test(source[at]!)) at++;
  return at;
}

function symbolFirst(match: RegExpExecArray): PricingToken {
  const symbol = match[1]!.toLowerCase();
  const { text, value } = valued(match, 2);
  return { kind: 'money', text, amount: value, currency: symbol === '$' ? null : (SYMBOLS[symbol] ?? symbol) };
}

function wordLast(match: RegExpExecArray): PricingToken {
  const { currency, hundredth } = MONEY_WORDS[match[4]!.toLowerCase()]!;
  const { text, value } = valued(match, 1);
  return { kind: 'money', text, amount: hundredth ? value.dividedBy(100) : value, currency };
}

/** The number in this capture group, multiplied by the multiplier in one of the next two groups. */
function valued(match: RegExpExecArray, group: number): { text: string; value: Decimal } {
  const digits = match[group]!;
  const plain =
    /,\d{1,2}$/.test(digits) && !/,\d{3}/.test(digits) ? digits.replace(',', '.') : digits.replaceAll(',', '');
  const times = (match[group + 1] ?? match[group + 2])?.toLowerCase();
  return { text: match[0], value: new Decimal(plain).times(times ? TIMES.get(times)! : '1') };
}

function wordToken([text]: RegExpExecArray): PricingToken {
  const word = text.toLowerCase();
  const value = NUMBER_WORDS.indexOf(word);
  if (value >= 0) return { kind: 'number', text, value: new Decimal(String(value)) };
  // Reads "million" in "per million tokens".
  const times = word.length > 2 ? TIMES.get(word) : undefined;
  if (times) return { kind: 'number', text, value: new Decimal(times) };
  return { kind: 'word', text, word };
}
