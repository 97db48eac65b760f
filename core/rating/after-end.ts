/**
 * Late usage of an ended subscription is billed on separate invoices (docs/rules/invoices.md, "Late events"). Each covers the time since
 * the end of the subscription, or since the previous late invoice. A recomputation recognizes such an invoice by its period, because that
 * starts at or after the end.
 */
import type { Milliseconds } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';
import type { BilledSubscription, ReferencePoint } from './charges.ts';

export function isAfterEnd(period: Period, { end_ms }: Pick<BilledSubscription, 'end_ms'>): boolean {
  return end_ms !== null && period.start >= end_ms && period.start < period.end;
}

/** Selects the billing rule of an invoice. An invoice for a period after the end charges late usage only. */
export function deriveReferencePoint<Reference extends ReferencePoint>(
  reference: Reference,
  period: Period,
  subscription: Pick<BilledSubscription, 'end_ms'>,
): Reference | 'late' {
  return reference === 'period_end' && isAfterEnd(period, subscription) ? 'late' : reference;
}

/**
 * Period of the next late invoice; null if no time has passed since the last one. `ends` are the period ends of the
 * existing invoices.
 */
export function latePeriod(
  ends: readonly Milliseconds[],
  { end_ms, now }: Pick<BilledSubscription, 'end_ms'> & { readonly now: Milliseconds },
): Period | null {
  if (end_ms === null) return null;
  const start = Math.max(end_ms, ...ends.filter((end) => end <= now));
  return start < now ? { start, end: now } : null;
}
