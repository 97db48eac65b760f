/**
 * Computes the periods, shares and expiry of granted credits. A recurring grant adds credits in every period of its
 * anchor's grid, and a short first period adds its share (docs/rules/credits.md, "A short first period", "When credits
 * expire"). Instants are milliseconds since 1970.
 */

import type { CreditGrant } from '../../catalog/credit-grant/record.ts';
import { Decimal, type DecimalInput } from '../../foundation/decimal.ts';
import { type Milliseconds, toInstant } from '../../foundation/time/instant.ts';
import { nextPeriodEnd, type Period, type RecurringPeriod, wholePeriod } from '../../foundation/time/period.ts';
import { CREDIT_DECIMALS } from '../../rating/wallet/rates.ts';
import type { Subscription } from '../../subscriptions/record.ts';

type GrantPeriods = {
  readonly period: RecurringPeriod;
  readonly period_count: number;
  /** Instant from which the periods are counted. */
  readonly anchor: Milliseconds;
  readonly timezone: string;
};

/** Period of a recurring grant that begins at `period_start`, and the whole period that contains it. */
export function toGrantPeriod(
  { period, period_count, anchor, timezone }: GrantPeriods,
  period_start: Milliseconds,
): { period: Period; whole: Period } {
  const rule = { billing_period: period, billing_period_count: period_count, billing_anchor: anchor, timezone };
  const whole = wholePeriod({ ...rule, period_start });
  return { period: { start: period_start, end: nextPeriodEnd({ ...rule, period_start }) }, whole };
}

/** Share of `credits` for a period that begins at `from`, in proportion to its time, to the millisecond. */
export function computeCreditShare(credits: DecimalInput, whole: Period, from: Milliseconds): Decimal {
  if (from <= whole.start) return new Decimal(credits);
  if (from >= whole.end) return new Decimal(0);
  return new Decimal(credits)
    .times(whole.end - from)
    .dividedBy(whole.end - whole.start)
    .toDecimalPlaces(CREDIT_DECIMALS);
}

const UNITS = { DAY: 'DAILY', WEEK: 'WEEKLY', MONTH: 'MONTHLY', YEAR: 'ANNUAL' } as const;

type CreditExpiration = Pick<CreditGrant, 'expiration_type' | 'expiration_duration' | 'expiration_duration_unit'>;
export type BillingCycles = Pick<
  Subscription,
  | 'start_date'
  | 'end_date'
  | 'trial_start'
  | 'trial_end'
  | 'current_period_start'
  | 'current_period_end'
  | 'billing_anchor'
  | 'billing_period'
  | 'billing_period_count'
  | 'timezone'
>;

/** Expiry of credits for a period that begins at `period_start`; null if they never expire. */
export function computeCreditExpiry(
  { expiration_type, expiration_duration, expiration_duration_unit }: CreditExpiration,
  period_start: Milliseconds,
  subscription: BillingCycles,
): Milliseconds | null {
  if (expiration_type === 'NEVER') return null;
  if (expiration_type === 'BILLING_CYCLE') return findCycleEnd(subscription, period_start);
  return nextPeriodEnd({
    billing_period: UNITS[expiration_duration_unit!],
    billing_period_count: expiration_duration!,
    billing_anchor: period_start,
    period_start,
    timezone: subscription.timezone,
  });
}

/** End of the billing period or trial that contains `at`. */
function findCycleEnd(subscription: BillingCycles, at: Milliseconds): Milliseconds {
  const { billing_anchor, current_period_start, current_period_end, trial_start, trial_end } = subscription;
  const [running, runningEnd] = [toInstant(current_period_start), toInstant(current_period_end)];
  if (at >= running && at < runningEnd) return runningEnd;
  if (trial_start && trial_end && at >= toInstant(trial_start) && at < toInstant(trial_end))
    return toInstant(trial_end);
  const last = subscription.end_date ? toInstant(subscription.end_date) : Number.POSITIVE_INFINITY;
  // Credits for a period after the end of the subscription expire at that end.
  if (at >= last) return last;
  const paid = toInstant(trial_end ?? subscription.start_date);
  let start = at >= runningEnd ? runningEnd : Math.min(paid, at);
  for (;;) {
    const end = nextPeriodEnd({ ...subscription, billing_anchor: toInstant(billing_anchor), period_start: start });
    if (end >= last) return last;
    if (at < end) return end;
    start = end;
  }
}
