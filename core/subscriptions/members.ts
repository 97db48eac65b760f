/**
 * Customers whose usage a subscription counts, each with an interval (docs/rules/subscriptions.md, "Families"): its own
 * customer, and each customer who inherits it, from the day of joining to the day of leaving. They are measured as if
 * they were one customer.
 */
import type { Milliseconds } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';

export type SubscriptionMember = {
  readonly external_customer_id: string;
  readonly joined_ms: Milliseconds;
  /** Instant at which the customer left; null while the customer takes part. */
  readonly left_ms: Milliseconds | null;
};

/**
 * Customers of a usage query. A customer in `clipped` counts only in those intervals, every other one in the whole
 * range.
 */
type CountedCustomers = {
  readonly external_customer_ids: readonly string[];
  readonly clipped: ReadonlyMap<string, readonly Period[]>;
};

/**
 * Selects the customers whose events in `window`, outside `gaps`, count for a charge of a service period. A customer who left before the
 * service period is excluded: a meter that never resets would still count the standing usage of this customer, such as seats.
 */
export function computeCountedCustomers(
  members: readonly SubscriptionMember[],
  window: Period,
  service_start: Milliseconds,
  gaps: readonly Period[] = [],
): CountedCustomers {
  const clipped = new Map<string, Period[]>();
  const whole = new Set<string>();
  for (const { external_customer_id, joined_ms, left_ms } of members) {
    const left = left_ms ?? Number.POSITIVE_INFINITY;
    const time = { start: Math.max(joined_ms, window.start), end: Math.min(left, window.end) };
    if (left <= service_start || time.start >= time.end) continue;
    const isWhole = gaps.length === 0 && time.start === window.start && time.end === window.end;
    if (isWhole) whole.add(external_customer_id);
    else clipped.set(external_customer_id, [...(clipped.get(external_customer_id) ?? []), ...subtractGaps(gaps, time)]);
  }
  for (const id of whole) clipped.delete(id);
  return { external_customer_ids: [...new Set([...whole, ...clipped.keys()])], clipped };
}

/** Subtracts gaps, which are in order of time, from an interval. */
function subtractGaps(gaps: readonly Period[], { start, end }: Period): Period[] {
  const starts = [start, ...gaps.map((gap) => gap.end)];
  const ends = [...gaps.map((gap) => gap.start), end];
  const parts = starts.map((from, index) => ({ start: Math.max(from, start), end: Math.min(ends[index]!, end) }));
  return parts.filter((part) => part.start < part.end);
}
