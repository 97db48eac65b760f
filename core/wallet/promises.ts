/**
 * Whether a wallet can keep what is held of it (docs/rules/reservations.md, "Credits"): credits are used in their order, so that whoever comes first may take those
 * that last, and leave those that are gone before a longer hold ends.
 */
import { type Decimal, sumOf } from '../decimal.ts';
import type { Milliseconds } from '../time/instant.ts';
import { type Lot, lotsAfter, takeFrom, usableCredits } from './lots.ts';

/** So many credits, to be used until then at the latest; less than 0 is what is promised no more. */
export type Promised = { readonly until: Milliseconds; readonly credits: Decimal };

/** Whoever of them comes first, and however late: those that end sooner take theirs at their end, when the fewest lots are left to take them from. */
export function keepsPromises(lots: readonly Lot[], promised: readonly Promised[]): boolean {
  let left = lots;
  const together = togetherOf(lots, promised);
  let all = sumOf(together.map(({ credits }) => credits));
  for (const { until, credits } of together) {
    if (usableCredits(left, until).lt(all)) return false;
    left = lotsAfter(left, takeFrom(left, credits, until).parts);
    all = all.minus(credits);
  }
  return true;
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
