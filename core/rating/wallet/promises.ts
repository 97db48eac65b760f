/**
 * Decides whether a wallet can cover its reservations (docs/rules/reservations.md, "Credits"). Credits are used in a
 * fixed order. So a reservation that ends soon may use credits with a late expiry and leave credits that expire before
 * a longer reservation ends.
 */
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import { deductFromLots, filterLotsByKind, type Lot, type LotKind, sumUsableCredits, takeFromLots } from './lots.ts';
import { CREDIT_DECIMALS } from './rates.ts';

/** Credits that a hold will use, at `until` at the latest. A negative amount is a released hold. */
export type PromisedCredits = { readonly until: Milliseconds; readonly credits: Decimal };

const LEAST_CREDIT = new Decimal(10).pow(-CREDIT_DECIMALS);

/**
 * Whether the lots suffice for all holds, in whatever order and at whatever time the holds use them. In the worst case each hold uses its
 * credits at its end, when the fewest lots remain.
 */
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

/** Usable credits that no hold needs, at least 0. */
export function computeUnpromisedCredits(
  lots: readonly Lot[],
  at_ms: Milliseconds,
  promised: readonly PromisedCredits[],
): Decimal {
  return Decimal.max(ZERO, sumUsableCredits(lots, at_ms).minus(sumDecimals(promised.map(({ credits }) => credits))));
}

/**
 * Credits that can be used without breaking a hold: the credits that are not held, or fewer if the order of use would take lots that a
 * longer hold needs. `kind` limits the lots to one kind.
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
  // If an amount breaks no hold, a smaller amount breaks none either, so binary search finds the maximum.
  let [free, tooMuch] = [ZERO, beside];
  while (tooMuch.minus(free).gt(LEAST_CREDIT)) {
    const half = free.plus(tooMuch).dividedBy(2).toDecimalPlaces(CREDIT_DECIMALS, Decimal.ROUND_UP);
    if (isKeepingPromises(half)) free = half;
    else tooMuch = half;
  }
  return free;
}

/** Merges holds that the same lots can cover; the earliest end comes first. */
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

/** Distinct expiries of the lots, ascending. */
export function listExpiries(lots: readonly Lot[]): Milliseconds[] {
  const expiries = lots.flatMap(({ expiry_ms }) => expiry_ms ?? []);
  return [...new Set(expiries)].sort((a, b) => a - b);
}
