/**
 * A usage export lists intervals, each with the amount that it added to its charge (docs/rules/usage.md, "What a day adds to a charge"):
 * the cost of the period up to the end of the interval, less the cost up to its start. So the intervals of a period add up to its charge
 * with every price and every meter, and no tier has to be divided between them. Instants are microseconds since 1970.
 */
import { ZERO } from '../foundation/decimal.ts';
import { ceilToMs, type Microseconds, toMs, toUs } from '../foundation/time/instant.ts';
import { windowStarts } from '../foundation/time/window.ts';
import type { LineAmount } from './line-amount.ts';

export type ChargeInterval = { readonly start_us: Microseconds; readonly end_us: Microseconds };

export const SPLITS = ['DAY', 'MONTH'] as const;
export type Split = (typeof SPLITS)[number];

/** Local days or months of a range; the first and the last are cut to it. Returns the range itself if `split` is null. */
export function splitRange(range: ChargeInterval, split: Split | null, timezone: string): ChargeInterval[] {
  if (split === null) return [range];
  const starts = windowStarts(toMs(range.start_us), ceilToMs(range.end_us), split, { timezone });
  const bounds = [range.start_us, ...starts.slice(1).map(toUs), range.end_us];
  return bounds.slice(1).map((end_us, index) => ({ start_us: bounds[index]!, end_us }));
}

/** Parts of the intervals that lie in another interval, such as a service period. */
export function cutTo(intervals: readonly ChargeInterval[], { start_us, end_us }: ChargeInterval): ChargeInterval[] {
  return intervals
    .map((one) => ({ start_us: Math.max(one.start_us, start_us), end_us: Math.min(one.end_us, end_us) }))
    .filter((one) => one.start_us < one.end_us);
}

/** Parts of a range that no other interval covers. */
export function computeUncovered(range: ChargeInterval, covering: readonly ChargeInterval[]): ChargeInterval[] {
  const gaps: ChargeInterval[] = [];
  let from = range.start_us;
  for (const { start_us, end_us } of [...covering].sort((a, b) => a.start_us - b.start_us)) {
    if (start_us > from) gaps.push({ start_us: from, end_us: Math.min(start_us, range.end_us) });
    from = Math.max(from, end_us);
    if (from >= range.end_us) return gaps;
  }
  return [...gaps, { start_us: from, end_us: range.end_us }];
}

/** Fields of a charge that add up over intervals. */
export type ChargedAmounts = Pick<LineAmount, 'quantity' | 'amount'> & { readonly event_count: number };

/** A charge without usage: a quantity of 0 costs 0 with every price. */
export const NOTHING_CHARGED: ChargedAmounts = { quantity: ZERO, amount: ZERO, event_count: 0 };

export function toChargedAmounts({ quantity, amount, computed_from }: LineAmount): ChargedAmounts {
  return { quantity, amount, event_count: computed_from.event_count ?? 0 };
}

/** Difference between two states of one charge; negative if the charge fell. */
export function computeAddedCharge(before: ChargedAmounts, after: ChargedAmounts): ChargedAmounts {
  return {
    quantity: after.quantity.minus(before.quantity),
    amount: after.amount.minus(before.amount),
    event_count: after.event_count - before.event_count,
  };
}

export function isNothing({ quantity, amount, event_count }: ChargedAmounts): boolean {
  return quantity.isZero() && amount.isZero() && event_count === 0;
}
