/**
 * What comes late for a subscription that has ended stands on invoices of its own: each is of the time since the end, or since the
 * invoice of this kind before it (docs/rules/invoices.md, "Late events"). So an invoice of a period that lies behind the end is known
 * for one, whenever it is computed again.
 */
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import type { BilledSubscription, ReferencePoint } from './charges.ts';

export function isAfterEnd(period: Period, { end_ms }: Pick<BilledSubscription, 'end_ms'>): boolean {
  return end_ms !== null && period.start >= end_ms && period.start < period.end;
}

/** By which rule the invoice of a period is computed: what lies behind the end charges what came late, and nothing else. */
export function deriveReferencePoint<Reference extends ReferencePoint>(
  reference: Reference,
  period: Period,
  subscription: Pick<BilledSubscription, 'end_ms'>,
): Reference | 'late' {
  return reference === 'period_end' && isAfterEnd(period, subscription) ? 'late' : reference;
}

/** Of the next invoice: `ends` are those of the invoices that the subscription has. Null where there is no time in between. */
export function latePeriod(
  ends: readonly Milliseconds[],
  { end_ms, now }: Pick<BilledSubscription, 'end_ms'> & { readonly now: Milliseconds },
): Period | null {
  if (end_ms === null) return null;
  const start = Math.max(end_ms, ...ends.filter((end) => end <= now));
  return start < now ? { start, end: now } : null;
}
