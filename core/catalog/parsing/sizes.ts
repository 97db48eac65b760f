/**
 * Converts amounts of data to the size that is priced: "the first 10 TB at $0.09 per GB" is 10,000 GB, because sizes
 * differ by thousands. Only larger sizes are converted. If several sizes are priced, nothing changes, and a price of one
 * size for tiers in another is not understood.
 */
import { Decimal } from '../../foundation/decimal.ts';

const SIZES = ['kb', 'mb', 'gb', 'tb', 'pb'];
const WORDS: Readonly<Record<string, string>> = {
  kilobyte: 'kb',
  megabyte: 'mb',
  gigabyte: 'gb',
  terabyte: 'tb',
  petabyte: 'pb',
};
const SIZE = `(${[...SIZES, ...Object.keys(WORDS).map((word) => `${word}s?`)].join('|')})`;
const COUNT = String.raw`(?<![$€£¥₹\d.,])(\d[\d,]*(?:\.\d+)?)`;
const PRICED = new RegExp(String.raw`(?:\bper|/|\ba|\beach|\bevery)\s*${SIZE}\b`, 'giu');
const AMOUNT = new RegExp(String.raw`(?:${COUNT}(\s*(?:to|-|–|—|and|through)\s*))?${COUNT}\s*${SIZE}\b`, 'giu');

export function convertToPricedSize(text: string): { text: string; assumption: string | null } {
  // Maps the size to the word that the price uses for it.
  const priced = new Map(Array.from(text.matchAll(PRICED), ([, word]) => [toSize(word!), word!]));
  const [[only, name] = []] = priced;
  let assumption: string | null = null;
  if (only === undefined || priced.size > 1) return { text, assumption };
  const converted = text.replace(
    AMOUNT,
    (words: string, from: string | undefined, to: string, until: string, size: string) => {
      const [low, high] = [from && times(from, toSize(size), only), times(until, toSize(size), only)];
      if (high === null || low === null) return words;
      assumption = `1 ${toSize(size).toUpperCase()} is ${times('1', toSize(size), only)} ${only.toUpperCase()}`;
      return `${low ? `${low}${to}` : ''}${high} ${name}`;
    },
  );
  return { text: converted, assumption };
}

/** Whether both units are one thing in two sizes: "gb" and "tb", "gb egress" and "tb egress". */
export function areOtherSizes(a: string | null | undefined, b: string | null | undefined): boolean {
  const [one = '', ...of] = (a ?? '').split(' ');
  const [other = '', ...ofOther] = (b ?? '').split(' ');
  const areSizes = [one, other].every((size) => SIZES.includes(toSize(size)));
  return areSizes && toSize(one) !== toSize(other) && of.join(' ') === ofOther.join(' ');
}

const toSize = (word: string) => WORDS[word.toLowerCase().replace(/s$/, '')] ?? word.toLowerCase();

/** Multiplies a count of `size` to units of `into`; null if `size` is not the larger one. */
function times(count: string, size: string, into: string): string | null {
  const steps = SIZES.indexOf(size) - SIZES.indexOf(into);
  return steps <= 0 ? null : new Decimal(count.replaceAll(',', '')).times(new Decimal('1000').pow(steps)).toFixed();
}
