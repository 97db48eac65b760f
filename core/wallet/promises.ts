/**
 * Whether a wallet can keep what is held of it (docs/rules/reservations.md, "Credits"): credits are used in their order, so that whoever comes first may take those
 * that last, and leave those that are gone before a longer hold ends.
 */
import { Decimal, sumDecimals, ZERO } from '../decimal.ts';
import type { Milliseconds } from '../time/instant.ts';
import { deductFromLots, filterLotsByKind, type Lot, type LotKind, sumUsableCredits, takeFromLots } from './lots.ts';
import { CREDIT_DECIMALS } from './rates.ts';

/** So many credits, to be used until then at the latest; less than 0 is what is promised no more. */
export type PromisedCredits = { readonly until: Milliseconds; readonly credits: Decimal };

const LEAST_CREDIT = new Decimal(10).pow(-CREDIT_DECIMALS);

/** Whoever of them comes first, and however late: those that end sooner take theirs at their end, when the fewest lots are left to take them from. */
export function canKeepPromises(lots: readonly Lot[], promised: readonly PromisedCredits[]): boolean {
  let left = lots;
  const merged = mergePromises(lots, promised);
  let all = sumDecimals(merged.map(({ credits }) => credits));
  for (const { until, credits } of merged) {
    if (sumUsableCredits(left, until).lt(all)) return false;
    left = deductFromLots(left, takeFromLots(left, credits, until).parts);
    all = all.minus(credits);
  }
  return true;
}

/** How many credits there are beside what is held. */
export function computeUnpromisedCredits(
  lots: readonly Lot[],
  at_ms: Milliseconds,
  promised: readonly PromisedCredits[],
): Decimal {
  return Decimal.max(ZERO, sumUsableCredits(lots, at_ms).minus(sumDecimals(promised.map(({ credits }) => credits))));
}

/**
 * How many credits can be used without what is held: all beside it, or what the order of use leaves of that to a hold that outlives the others.
 * `kind`: of these lots alone.
 */
export function computeFreeCredits(
  lots: readonly Lot[],
  at_ms: Milliseconds,
  promised: readonly PromisedCredits[],
  kind?: LotKind,
): Decimal {
  const usable = filterLotsByKind(lots, kind);
  const beside = Decimal.min(computeUnpromisedCredits(lots, at_ms, promised), sumUsableCredits(usable, at_ms));
  const isKeepingPromises = (credits: Decimal) =>
    canKeepPromises(deductFromLots(lots, takeFromLots(usable, credits, at_ms).parts), promised);
  if (promised.length === 0 || isKeepingPromises(beside)) return beside;
  // Who takes less breaks no promise the more, so the most that can be taken is found by halves.
  let [free, tooMuch] = [ZERO, beside];
  while (tooMuch.minus(free).gt(LEAST_CREDIT)) {
    const half = free.plus(tooMuch).dividedBy(2).toDecimalPlaces(CREDIT_DECIMALS, Decimal.ROUND_UP);
    if (isKeepingPromises(half)) free = half;
    else tooMuch = half;
  }
  return free;
}

/** Those that the same lots are good for, as one; the first to end comes first. */
function mergePromises(lots: readonly Lot[], promised: readonly PromisedCredits[]): PromisedCredits[] {
  const expiries = listExpiries(lots);
  const groups = new Map<number, PromisedCredits>();
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
export function listExpiries(lots: readonly Lot[]): Milliseconds[] {
  const expiries = lots.flatMap(({ expiry_ms }) => expiry_ms ?? []);
  return [...new Set(expiries)].sort((a, b) => a - b);
}
