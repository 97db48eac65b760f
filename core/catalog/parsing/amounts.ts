/** Phrases that begin with an amount: the words after the amount decide what it pays for. */
import type { Decimal } from '../../foundation/decimal.ts';
import { readLimit, readPiece, readRange } from './bounds.ts';
import type { Cursor, ParsedInterval, ParsedMoney } from './cursor.ts';
import { isHad, isMonthly, monthly, ONE, type PriceConjunction, type PricingFact, type RateBound } from './fact.ts';
import { areOtherSizes } from './sizes.ts';
import type { PricingToken } from './tokens.ts';

type AmountPhrase = {
  span?: ParsedInterval;
  paid?: ParsedInterval;
  each?: { unit: string | null; per: Decimal; isExtra: boolean };
  after?: Decimal;
  bound?: RateBound;
  /** The unit of a bound or of a free quantity; the amount is not necessarily per one such unit. */
  named?: string;
  most?: { unit: string; count: Decimal };
  isOnce?: boolean;
  name?: string;
};

export function readMoney(cursor: Cursor, before: PricingToken | undefined): PricingFact[] | undefined {
  const isThen = before?.kind === 'word' && ['then', 'thereafter'].includes(before.word);
  const joined = deriveJoin(cursor);
  const moneys = cursor.moneys();
  if (moneys === undefined) return undefined;
  const phrase: AmountPhrase = {};
  while (readMore(cursor, phrase)) continue;
  const fact = toFact(moneys, phrase, joined);
  // A price after "or" is an alternative. Only base and seat prices have alternatives; for others it is not known which price applies.
  if (joined === 'or' && fact?.kind !== 'base' && fact?.kind !== 'seat') return undefined;
  if (fact?.kind === 'usage' && isThen && fact.per.eq(ONE) && fact.after === null && moneys.length === 1)
    return [{ kind: 'rate', money: moneys[0]!, unit: fact.unit, bound: { open: true }, per: fact.per }];
  if (fact?.kind === 'base' && phrase.most)
    return [fact, { kind: 'allowance', ...phrase.most, span: null, isMost: true }];
  return fact && [fact];
}

function deriveJoin({ tokens, at }: Cursor): PriceConjunction {
  for (let index = at - 1; index >= 0; index--) {
    const before = tokens[index]!;
    const text = before.kind === 'word' ? before.word : before.kind === 'sign' ? before.sign : '';
    if (['or', '/'].includes(text)) return 'or';
    if (['and', 'plus', '+', 'with'].includes(text)) return 'and';
    if (!['a', 'an', 'at', 'for', 'just', 'only', 'pay'].includes(text)) return null;
  }
  return null;
}

/** Reads one more part of the phrase, if there is one. */
function readMore(cursor: Cursor, phrase: AmountPhrase): boolean {
  const isUsage = phrase.each !== undefined && !(phrase.each.unit && isHad(phrase.each.unit));
  const paid = phrase.paid || isUsage ? undefined : cursor.try(() => billedEvery(cursor));
  if (paid) phrase.paid = paid;
  const span = paid || phrase.span ? undefined : cursor.period();
  if (span) phrase.span = span;
  const bound = paid || span || phrase.bound ? undefined : cursor.try(() => afterwards(cursor, phrase));
  if (bound) return true;
  const each = paid || span || phrase.each ? undefined : readPiece(cursor);
  if (each) phrase.each = each;
  const isOnce = !paid && !span && !each && !phrase.isOnce && isPaidOnce(cursor, phrase);
  return Boolean(paid || span || each || isOnce);
}

/** Reads "billed annually", "(billed yearly)". */
function billedEvery(cursor: Cursor): ParsedInterval | undefined {
  cursor.takes(',');
  cursor.takes('(');
  cursor.takes('when', 'if');
  if (!cursor.takes('billed', 'paid', 'invoiced')) return undefined;
  const span = cursor.period();
  cursor.takes(')');
  return span;
}

/** Reads "after 1,000 free", "beyond the first 500 calls", "for the first 1,000", "for the next 4,000", "after that". */
function afterwards(cursor: Cursor, phrase: AmountPhrase): true | undefined {
  const most = cursor.try(() => readLimit(cursor));
  const bound = most ?? cursor.try(() => readRange(cursor));
  if (bound) {
    phrase.bound = bound.bound;
    if (bound.unit) phrase.named = bound.unit;
    if (most?.isMost && most.unit && 'upTo' in most.bound) phrase.most = { unit: most.unit, count: most.bound.upTo };
    return true;
  }
  if (
    cursor.takes('thereafter', 'afterwards') ||
    cursor.takesAll('after', 'that') ||
    cursor.takesAll('above', 'that') ||
    cursor.takesAll('beyond', 'that')
  ) {
    phrase.bound = { open: true };
    return true;
  }
  if (!cursor.takes('after', 'above', 'beyond', 'over', 'exceeding')) return undefined;
  cursor.takes('the');
  cursor.takes('first', 'included', 'free');
  const count = cursor.count();
  if (count === undefined) return undefined;
  cursor.takes('free', 'included');
  const unit = cursor.unit();
  cursor.takes('free', 'included');
  const span = cursor.period();
  if (span && !isMonthly(span)) return undefined;
  phrase.after = count;
  if (unit) phrase.named = unit;
  return true;
}

function isPaidOnce(cursor: Cursor, phrase: AmountPhrase): boolean {
  const isOnce = cursor.takes(...ONCE);
  const name = onceName(cursor);
  if (!isOnce && name === null) return false;
  cursor.takes('fee', 'charge', 'payment');
  phrase.isOnce = true;
  if (name) phrase.name = name;
  return true;
}

function toFact(
  moneys: readonly ParsedMoney[],
  phrase: AmountPhrase,
  joined: PriceConjunction,
): PricingFact | undefined {
  const { span, paid = null, each, after = null, bound } = phrase;
  if (phrase.isOnce) return bound ? undefined : { kind: 'once', moneys, name: phrase.name ?? 'One-time fee' };
  const unit = each?.unit ?? phrase.named ?? null;
  const per = each?.per ?? ONE;
  // "$29 per month for up to 5 users" is a price per month, whatever the number of users.
  if (phrase.most && !each && span) return { kind: 'base', moneys, joined, paid, ...span };
  if (areOtherSizes(each?.unit, phrase.named)) return undefined;
  if ((bound || after) && !isByUse(phrase, unit)) return undefined;
  if (bound)
    // A rate with amounts in several currencies is not understood, because tiers have one currency.
    return moneys.length > 1 ? undefined : { kind: 'rate', money: moneys[0]!, unit, bound, per };
  if (unit && isHad(unit) && per.eq(ONE)) return { kind: 'seat', moneys, unit, joined, paid, ...(span ?? monthly) };
  if (each || after) {
    // Usage is charged by the month, so a usage price with another interval is not understood.
    if (paid || (span && !isMonthly(span))) return undefined;
    return { kind: 'usage', moneys, unit, per, after, isExtra: each?.isExtra ?? false };
  }
  return span ? { kind: 'base', moneys, joined, paid, ...span } : undefined;
}

/** Whether an amount with a bound is the price of each unit. An amount paid per interval, or for having a unit, is not. */
function isByUse({ span, paid, each, after, bound }: AmountPhrase, unit: string | null): boolean {
  if (unit && isHad(unit) && (after || span || paid || (bound && !each))) return false;
  return !paid && (!span || (each !== undefined && isMonthly(span)));
}

const ONCE = ['one-time', 'onetime', 'once', 'one-off'];

const ONCE_NAMES = ['setup', 'set-up', 'installation', 'onboarding', 'activation', 'implementation'];

/** Reads "one-time setup fee of $500". */
export function readOneTimeFee(cursor: Cursor): PricingFact[] | undefined {
  if (deriveJoin(cursor) === 'or') return undefined;
  const isOnce = cursor.takes(...ONCE);
  const name = onceName(cursor);
  if (!isOnce && name === null) return undefined;
  cursor.takes('fee', 'charge', 'cost', 'payment');
  cursor.takes('of', 'is', ':', 'costs', 'at');
  const moneys = cursor.moneys();
  if (moneys === undefined) return undefined;
  cursor.takes(...ONCE);
  return [{ kind: 'once', moneys, name: name ?? 'One-time fee' }];
}

function onceName(cursor: Cursor): string | null {
  const { token } = cursor;
  if (token?.kind !== 'word' || !cursor.takes(...ONCE_NAMES)) return null;
  return `${token.word[0]!.toUpperCase()}${token.word.slice(1)} fee`;
}
