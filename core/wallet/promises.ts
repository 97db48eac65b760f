/**
 * Whether a wallet can keep what is held of it (docs/rules/reservations.md, "Credits"): credits are used in their order, so that whoever comes first may take those
 * that last, and leave those that are gone before a longer hold ends.
 */
import { Decimal, sumDecimals, ZERO } from '../decimal.ts';
import type { Milliseconds } from '../time/instant.ts';
import { type Lot, type LotKind, lotsAfter, lotsOfKind, takeFrom, usableCredits } from './lots.ts';
import { CREDIT_DECIMALS } from './rates.ts';

/** So many credits, to be used until then at the latest; less than 0 is what is promised no more. */
export type Promised = { readonly until: Milliseconds; readonly credits: Decimal };

const LEAST_CREDIT = new Decimal(10).pow(-CREDIT_DECIMALS);

/** Whoever of them comes first, and however late: those that end sooner take theirs at their end, when the fewest lots are left to take them from. */
export function keepsPromises(lots: readonly Lot[], promised: readonly Promised[]): boolean {
  let left = lots;
  const together = togetherOf(lots, promised);
  let all = sumDecimals(together.map(({ credits }) => credits));
  for (const { until, credits } of together) {
    if (usableCredits(left, until).lt(all)) return false;
    left = lotsAfter(left, takeFrom(left, credits, until).parts);
    all = all.minus(credits);
  }
  return true;
}

/** How many credits there are beside what is held. */
export function creditsBeside(lots: readonly Lot[], at_ms: Milliseconds, promised: readonly Promised[]): Decimal {
  return Decimal.max(ZERO, usableCredits(lots, at_ms).minus(sumDecimals(promised.map(({ credits }) => credits))));
}

/**
 * How many credits can be used without what is held: all beside it, or what the order of use leaves of that to a hold that outlives the others.
 * `kind`: of these lots alone.
 */
export function freeCredits(
  lots: readonly Lot[],
  at_ms: Milliseconds,
  promised: readonly Promised[],
  kind?: LotKind,
): Decimal {
  const usable = lotsOfKind(lots, kind);
  const beside = Decimal.min(creditsBeside(lots, at_ms, promised), usableCredits(usable, at_ms));
  const isKept = (credits: Decimal) => keepsPromises(lotsAfter(lots, takeFrom(usable, credits, at_ms).parts), promised);
  if (promised.length === 0 || isKept(beside)) return beside;
  // Who takes less breaks no promise the more, so the most that can be taken is found by halves.
  let [free, tooMuch] = [ZERO, beside];
  while (tooMuch.minus(free).gt(LEAST_CREDIT)) {
    const half = free.plus(tooMuch).dividedBy(2).toDecimalPlaces(CREDIT_DECIMALS, Decimal.ROUND_UP);
    if (isKept(half)) free = half;
    else tooMuch = half;
  }
  return free;
}

/** Those that the same lots are good for, as one; the first to end comes first. */
function togetherOf(lots: readonly Lot[], promised: readonly Promised[]): Promised[] {
  const expiries = expiriesOf(lots);
  const groups = new Map<number, Promised>();
  for (const { until, credits } of promised) {
    const last = expiries.find((expiry) => expiry >= until) ?? Number.POSITIVE_INFINITY;
    const before = groups.get(last);
    groups.set(last, {
      until: Math.max(until, before?.until ?? until),
      credits: before ? before.credits.plus(credits) : credits,
    });
  }
  return [...groups.values()].filter(({ credits }) => credits.gt(0)).sort((a, b) => a.until - b.until);
}

/** When lots of it expire, the first first. */
export function expiriesOf(lots: readonly Lot[]): Milliseconds[] {
  const expiries = lots.flatMap(({ expiry_ms }) => expiry_ms ?? []);
  return [...new Set(expiries)].sort((a, b) => a - b);
}
