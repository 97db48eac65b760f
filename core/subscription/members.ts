/**
 * Whose usage a subscription counts, and when (docs/rules/subscriptions.md, "Families"): that of its own customer, and of
 * each customer who inherits it from the day on which they join to that on which they leave. All of them are measured as
 * if they were one customer.
 */
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';

export type SubscriptionMember = {
  readonly external_customer_id: string;
  readonly joined_ms: Milliseconds;
  /** Null while they are there. */
  readonly left_ms: Milliseconds | null;
};

/** The customers of a question; those in `clipped` are counted in these times only, and all others in the whole range. */
export type CountedCustomers = {
  readonly external_customer_ids: readonly string[];
  readonly clipped: ReadonlyMap<string, readonly Period[]>;
};

/**
 * Of a service that counts the events of a window. A meter that never resets counts what still stands, and what stood at a
 * customer who has left before the service does not: so nobody pays for the seats of who is gone. Nothing is counted in `gaps`.
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

/** Gaps are in order of time. */
function subtractGaps(gaps: readonly Period[], { start, end }: Period): Period[] {
  const starts = [start, ...gaps.map((gap) => gap.end)];
  const ends = [...gaps.map((gap) => gap.start), end];
  const parts = starts.map((from, index) => ({ start: Math.max(from, start), end: Math.min(ends[index]!, end) }));
  return parts.filter((part) => part.start < part.end);
}
