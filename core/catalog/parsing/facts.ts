/** Reads a description of prices phrase by phrase. Words that fit no phrase are returned in `left`, in their original form. */
import type { Decimal } from '../../foundation/decimal.ts';
import { readMoney, readOneTimeFee } from './amounts.ts';
import { readBound, readPiece } from './bounds.ts';
import { Cursor } from './cursor.ts';
import { isHad, isMonthly, ONE, type PricingFact } from './fact.ts';
import { areOtherSizes } from './sizes.ts';
import { type PricingToken, tokenize } from './tokens.ts';

type FactReading = {
  readonly facts: readonly PricingFact[];
  readonly left: readonly string[];
  readonly understood: number;
  readonly words: number;
};

/** Words that are skipped between phrases, because they have no meaning of their own. */
const FILLERS = new Set(
  (
    'a an the and or plus with then for of at is are be we you your our it its that this as to in on by per costs cost charge charges charged ' +
    'price prices priced pricing billed billing bill paid pay fee fees plan plans tier tiers base platform subscription flat rate monthly ' +
    'each all any every customer customers get gets comes come includes include including included offer offers has have there no up from ' +
    'also only just additionally usage recurring starts starting only account accounts organization company sold available our graduated'
  ).split(' '),
);

const YEARLY = ['annually', 'yearly', 'annual', 'year'];

export function readFacts(text: string): FactReading {
  const tokens = tokenize(text);
  const cursor = new Cursor(tokens);
  const facts: PricingFact[] = [];
  const left: PricingToken[][] = [];
  let wasLeft = false;
  while (cursor.token !== undefined) {
    const from = cursor.at;
    const fact = factAt(cursor, tokens[from - 1]);
    if (fact !== undefined) facts.push(...fact);
    else {
      const token = cursor.token;
      cursor.at++;
      if (saysNothing(token)) continue;
      if (wasLeft) left.at(-1)!.push(token);
      else left.push([token]);
    }
    wasLeft = fact === undefined;
  }
  const words = tokens.filter((token) => !saysNothing(token)).length;
  const lost = left.flat().length;
  return {
    facts,
    left: left.map((run) => run.map(({ text: word }) => word).join(' ')),
    understood: words - lost,
    words,
  };
}

function saysNothing(token: PricingToken): boolean {
  return token.kind === 'sign' || (token.kind === 'word' && FILLERS.has(token.word));
}

type FactRule = (cursor: Cursor, before: PricingToken | undefined) => PricingFact[] | undefined;

const RULES: readonly FactRule[] = [
  trial,
  discount,
  freeMonths,
  volume,
  readOneTimeFee,
  ladder,
  readMoney,
  minimum,
  allowance,
  features,
];

function factAt(cursor: Cursor, before: PricingToken | undefined): PricingFact[] | undefined {
  for (const rule of RULES) {
    const facts = cursor.try(() => rule(cursor, before));
    if (facts !== undefined) return facts;
  }
  return undefined;
}

/** Reads "14-day free trial", "free trial of 2 weeks". */
function trial(cursor: Cursor): PricingFact[] | undefined {
  const first = cursor.try(() => {
    const length = days(cursor);
    cursor.takes('free');
    return length && cursor.takes('trial') ? length : undefined;
  });
  if (first) return [{ kind: 'trial', ...first }];
  cursor.takes('free');
  if (!cursor.takes('trial')) return undefined;
  cursor.takes('of', 'for', 'period');
  cursor.takes('of', 'for');
  const length = days(cursor);
  return length && [{ kind: 'trial', ...length }];
}

function days(cursor: Cursor): { days: Decimal; isExact: boolean } | undefined {
  const count = cursor.count();
  cursor.takes('-');
  if (count === undefined) return undefined;
  if (cursor.takes('day', 'days')) return { days: count, isExact: true };
  if (cursor.takes('week', 'weeks')) return { days: count.times(7), isExact: true };
  return cursor.takes('month', 'months') ? { days: count.times(30), isExact: false } : undefined;
}

/** Reads "20% off when billed annually", "save 20% with yearly billing", "20% annual discount". */
function discount(cursor: Cursor): PricingFact[] | undefined {
  cursor.takes('save', 'saves', 'get');
  const percent = cursor.percent();
  if (percent === undefined || percent.gt(100)) return undefined;
  return reachesYearly(cursor) ? [{ kind: 'yearly_discount', percent }] : undefined;
}

/** Reads "two months free on annual billing". */
function freeMonths(cursor: Cursor): PricingFact[] | undefined {
  const months = cursor.count();
  if (months === undefined || months.gt(11) || !cursor.takes('months', 'month') || !cursor.takes('free'))
    return undefined;
  return reachesYearly(cursor) ? [{ kind: 'yearly_free_months', months }] : undefined;
}

const ABOUT_YEARS =
  'off discount savings saving when if for on with paid billed you pay billing payment plans the a are is per by'.split(
    ' ',
  );

function reachesYearly(cursor: Cursor): boolean {
  while (cursor.takes(...ABOUT_YEARS)) continue;
  if (!cursor.takes(...YEARLY)) return false;
  cursor.takes('billing', 'payment', 'plans', 'discount', 'subscriptions', 'commitment');
  return true;
}

function volume(cursor: Cursor): PricingFact[] | undefined {
  cursor.takes('with', 'at');
  if (!cursor.takes('volume')) return undefined;
  cursor.takes('pricing', 'tiers', 'discounts', 'based', 'rates');
  return [{ kind: 'volume' }];
}

/** Reads "first 1,000 calls free", "next 9,000 at $0.01", "up to 500: $2", "1,001 to 5,000: $1", "above that $0.5 each". */
function ladder(cursor: Cursor): PricingFact[] | undefined {
  const place = readBound(cursor);
  if (place === undefined) return undefined;
  const { unit, bound } = place;
  while (cursor.takes('are', 'is', 'at', 'for', 'cost', 'costs', ':', ',', '-', '=', 'it', 'units')) continue;
  if (cursor.takes('free', 'included')) return [{ kind: 'rate', money: null, unit, bound, per: ONE }];
  const money = cursor.money();
  if (money === undefined) return undefined;
  const before = cursor.period();
  const each = readPiece(cursor);
  const span = before ?? cursor.period();
  const of = each?.unit ?? unit;
  if (areOtherSizes(each?.unit, unit)) return undefined;
  // "up to 5 users, $29 per month" is a price per month with a limit of users; it is not a price per user.
  if (span ? !each || !isMonthly(span) || (of && isHad(of)) : !each && of && isHad(of)) return undefined;
  return [{ kind: 'rate', money, unit: of, bound, per: each?.per ?? ONE }];
}

/** Reads "minimum of 5 seats", "at least 5 seats". */
function minimum(cursor: Cursor): PricingFact[] | undefined {
  if (cursor.takes('minimum')) cursor.takes('of');
  else if (!cursor.takesAll('at', 'least')) return undefined;
  const count = cursor.count();
  const unit = cursor.unit();
  if (count === undefined || unit === undefined) return undefined;
  cursor.takes('minimum');
  return [{ kind: 'minimum', unit, count }];
}

/** Reads "1,000 free API calls", "includes 500 GB", "10 projects included", "up to 3 users", "unlimited builds". */
function allowance(cursor: Cursor): PricingFact[] | undefined {
  if (cursor.takes('unlimited')) {
    const unit = cursor.unit();
    return unit === undefined ? undefined : [{ kind: 'allowance', unit, count: null, span: null, isMost: false }];
  }
  let [isMost, isFree] = [false, false];
  for (;;) {
    if (cursor.takes('up', 'to', 'limited')) isMost = true;
    else if (cursor.takes('includes', 'include', 'including', 'included')) isFree = true;
    else if (!cursor.takes('with', 'the', 'first')) break;
  }
  const count = cursor.count();
  if (count === undefined) return undefined;
  if (cursor.takes('free', 'included')) isFree = true;
  const unit = cursor.unit();
  if (unit === undefined) return undefined;
  const before = cursor.period();
  cursor.takes('are', 'is');
  cursor.takes('for');
  if (cursor.takes('free', 'included')) isFree = true;
  const span = before ?? cursor.period() ?? null;
  return [{ kind: 'allowance', unit, count, span, isMost: isMost && !isFree }];
}

/** Reads "includes SSO, audit logs and priority support". */
function features(cursor: Cursor): PricingFact[] | undefined {
  if (!cursor.takes('includes', 'include', 'including', 'features')) return undefined;
  cursor.takes(':');
  const names: string[] = [];
  do {
    const named = cursor.try(() => featureName(cursor));
    if (named === undefined) break;
    names.push(named);
    cursor.takes(',');
  } while (cursor.takes('and', '&') || cursor.token?.kind === 'word');
  return names.length === 0 ? undefined : names.map((name) => ({ kind: 'feature', name }));
}

function featureName(cursor: Cursor): string | undefined {
  const from = cursor.at;
  if (cursor.unit() === undefined) return undefined;
  return cursor.tokens
    .slice(from, cursor.at)
    .map(({ text }) => text)
    .join(' ');
}
