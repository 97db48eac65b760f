/** A position in a list of tokens, and the small phrases that larger ones consist of. Each method moves forward or reads nothing. */
import type { Decimal } from '../../foundation/decimal.ts';
import type { RECURRING_PERIODS } from '../../foundation/time/period.ts';
import type { PricingToken } from './tokens.ts';

type ParsedRecurringPeriod = (typeof RECURRING_PERIODS)[number];
export type ParsedMoney = { readonly amount: Decimal; readonly currency: string | null };
export type ParsedInterval = { readonly billing_period: ParsedRecurringPeriod; readonly billing_period_count: number };

const PERIODS: Readonly<Record<string, ParsedRecurringPeriod>> = {
  day: 'DAILY',
  daily: 'DAILY',
  week: 'WEEKLY',
  wk: 'WEEKLY',
  weekly: 'WEEKLY',
  month: 'MONTHLY',
  mo: 'MONTHLY',
  monthly: 'MONTHLY',
  quarter: 'QUARTERLY',
  quarterly: 'QUARTERLY',
  'half-year': 'HALF_YEARLY',
  'half-yearly': 'HALF_YEARLY',
  year: 'ANNUAL',
  yr: 'ANNUAL',
  annum: 'ANNUAL',
  annual: 'ANNUAL',
  annually: 'ANNUAL',
  yearly: 'ANNUAL',
};

/** The words come from a user and may include `constructor`, so only own keys count. */
function toPeriod(word: string): ParsedRecurringPeriod | undefined {
  return [word, word.replace(/s$/, '')].flatMap((each) => (Object.hasOwn(PERIODS, each) ? PERIODS[each]! : []))[0];
}
const PER = new Set(['per', 'a', 'an', 'each', 'every']);

/** Words that never belong to the name of a unit. */
const NOT_UNITS = new Set(
  (
    'per a an each every after beyond above over exceeding for and plus then with free included includes include including at in on ' +
    'up to the first next or of from is are be will costs cost charged charge billed when if thereafter afterwards additional ' +
    'extra more further any all until under below minimum least no not we you our your it that this trial discount off unlimited ' +
    'between limited only just once one-time onetime setup set-up by paid but also as than so while plan tier'
  ).split(' '),
);
const UNIT_WORDS_MAX = 3;
/** Words for units beyond an allowance; not part of the unit's name. */
export const EXTRA = ['additional', 'extra', 'more', 'further'];

export class Cursor {
  readonly tokens: readonly PricingToken[];
  at = 0;

  constructor(tokens: readonly PricingToken[]) {
    this.tokens = tokens;
  }

  get token(): PricingToken | undefined {
    return this.tokens[this.at];
  }

  /** Returns the result of `read`; if it is undefined, the position is restored. */
  try<Read>(read: () => Read | undefined): Read | undefined {
    const from = this.at;
    const result = read();
    if (result === undefined) this.at = from;
    return result;
  }

  /** Reads one of these words or signs. */
  takes(...words: readonly string[]): boolean {
    const { token } = this;
    const text = token?.kind === 'word' ? token.word : token?.kind === 'sign' ? token.sign : undefined;
    if (text === undefined || !words.includes(text)) return false;
    this.at++;
    return true;
  }

  /** Reads these words, one after the other. */
  takesAll(...words: readonly string[]): boolean {
    return this.try(() => (words.every((word) => this.takes(word)) ? true : undefined)) ?? false;
  }

  number(): Decimal | undefined {
    const { token } = this;
    if (token?.kind !== 'number') return undefined;
    this.at++;
    return token.value;
  }

  /** Reads a whole number greater than 0. */
  count(): Decimal | undefined {
    return this.try(() => {
      const value = this.number();
      return value?.isInteger() && value.gt(0) ? value : undefined;
    });
  }

  percent(): Decimal | undefined {
    const { token } = this;
    if (token?.kind !== 'percent') return undefined;
    this.at++;
    return token.value;
  }

  money(): ParsedMoney | undefined {
    const { token } = this;
    if (token?.kind !== 'money') return undefined;
    this.at++;
    return { amount: token.amount, currency: token.currency };
  }

  /** Reads one amount in several currencies: "$29 or €27", "$29 / €27". */
  moneys(): ParsedMoney[] | undefined {
    const first = this.money();
    if (first === undefined) return undefined;
    const all = [first];
    for (;;) {
      const next = this.try(() => {
        this.takes('or', '/', ',', '(', '|');
        const money = this.money();
        return money && all.every(({ currency }) => currency !== money.currency) ? money : undefined;
      });
      if (next === undefined) return all;
      this.takes(')');
      all.push(next);
    }
  }

  /** Reads "per month", "/mo", "every 3 months", "monthly". */
  period(): ParsedInterval | undefined {
    return this.try(() => {
      const isPer =
        this.takes('/') || (this.token?.kind === 'word' && PER.has(this.token.word) && this.takes(this.token.word));
      const count = isPer ? this.count() : undefined;
      const { token } = this;
      if (token?.kind !== 'word') return undefined;
      const billing_period = toPeriod(token.word);
      const isAdverb = /ly$|^annual/.test(token.word);
      if (billing_period === undefined || isPer === isAdverb) return undefined;
      this.at++;
      return { billing_period, billing_period_count: count?.toNumber() ?? 1 };
    });
  }

  /** Reads a unit: "API calls" → "api call". Words before the unit, as in "per additional call", are skipped. */
  unit(): string | undefined {
    while (this.takes(...EXTRA)) continue;
    const words: string[] = [];
    while (words.length < UNIT_WORDS_MAX && this.token?.kind === 'word' && isUnitWord(this.token.word)) {
      words.push(this.token.word);
      this.at++;
    }
    const last = words.pop();
    return last === undefined ? undefined : [...words, singular(last)].join(' ');
  }
}

function isUnitWord(word: string): boolean {
  return !NOT_UNITS.has(word) && toPeriod(word) === undefined;
}

/** Converts a word to the singular, by a heuristic that suffices for things sold by the piece. */
export function singular(word: string): string {
  if (/(?:ss|us|is)$/.test(word) || word.length <= 2) return word;
  if (/ies$/.test(word)) return word.replace(/ies$/, 'y');
  if (/(?:ch|sh|x|ss)es$/.test(word)) return word.replace(/es$/, '');
  return word.replace(/s$/, '');
}

export function plural(unit: string): string {
  if (/(?:gb|mb|tb|kb|kwh)$/.test(unit)) return unit;
  if (/[^aeiou]y$/.test(unit)) return unit.replace(/y$/, 'ies');
  return /(?:ch|sh|x|ss)$/.test(unit) ? `${unit}es` : `${unit}s`;
}
