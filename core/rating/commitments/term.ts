/**
 * Commitments over several billing periods (docs/rules/commitments.md, "Over several periods"): a term begins with the commitment and ends
 * with the billing period in which its duration ends. Another term follows.
 */
import type { Milliseconds } from '../../foundation/time/instant.ts';
import { type Period, periodContaining, type RecurringPeriod } from '../../foundation/time/period.ts';

type TermRule = {
  readonly since: Milliseconds;
  readonly duration: RecurringPeriod;
  readonly timezone: string;
};

/**
 * Returns the term that contains the instant. Its dates count from the start of the commitment, and are not moved to the end of a billing
 * period.
 */
export function computeTerm(at: Milliseconds, { since, duration, timezone }: TermRule): Period {
  const rule = { billing_anchor: since, billing_period: duration, billing_period_count: 1, timezone };
  return periodContaining(Math.max(at, since), since, rule)!;
}

/** Length in months, with days as fractions; only for comparison. */
const LENGTHS: Record<RecurringPeriod, number> = {
  DAILY: 1 / 31,
  WEEKLY: 7 / 31,
  MONTHLY: 1,
  QUARTERLY: 3,
  HALF_YEARLY: 6,
  ANNUAL: 12,
};

type Length = { readonly billing_period: RecurringPeriod; readonly billing_period_count: number };

/** Compares a commitment's duration with the billing period: negative if it is shorter, 0 if both are equal. */
export function compareDuration(duration: RecurringPeriod, { billing_period, billing_period_count }: Length): number {
  const isSame = duration === billing_period && billing_period_count === 1;
  return isSame ? 0 : LENGTHS[duration] - LENGTHS[billing_period] * billing_period_count;
}
