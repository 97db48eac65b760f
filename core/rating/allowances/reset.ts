/**
 * Computes when usage resets to 0 against a limit (docs/rules/entitlements.md, "Reset periods"). A reset period counts whole local days: it
 * begins at midnight, on dates counted from the billing anchor. Without a reset period, or with one equal to the billing period, usage
 * resets at the exact instants of the billing periods, so that limit and invoice cover equal usage.
 */

import type { UsageResetPeriod } from '../../catalog/entitlement/record.ts';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { DAY_MS } from '../../foundation/time/durations.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import { type Period, type PeriodRule, periodContaining, wholePeriod } from '../../foundation/time/period.ts';
import { firstInstantAt, toLocalMs } from '../../foundation/time/zone.ts';
import { type BilledSubscription, periodRule } from '../charges.ts';
import { applyPeriodGridAt, periodGridEnd } from '../earlier-periods.ts';
import { computeShare, prorate } from '../proration.ts';

/** Interval in which usage adds up, from `start` until `end`, exclusive. A null end means that usage never resets. */
export type ResetWindow = { readonly start: Milliseconds; readonly end: Milliseconds | null };

type ResetRule = Pick<BilledSubscription, 'start_ms' | 'end_ms' | 'billing_anchor_ms' | 'timezone'> & {
  readonly usage_reset_period: UsageResetPeriod;
};

/** Interval around `now` in which usage adds up, within the active interval of the subscription. */
export function computeResetWindow(now: Milliseconds, rule: ResetRule): ResetWindow {
  const { start_ms, end_ms, billing_anchor_ms, timezone, usage_reset_period } = rule;
  if (now < start_ms) throw invalid('now', 'lies before the start of the subscription');
  if (usage_reset_period === 'NEVER') return { start: start_ms, end: null };
  const { start, end } = wholePeriod({
    period_start: now,
    billing_anchor: toMidnight(billing_anchor_ms, timezone),
    billing_period: usage_reset_period,
    billing_period_count: 1,
    timezone,
  });
  return { start: Math.max(start, start_ms), end: Math.min(end, end_ms ?? Infinity) };
}

type LimitedUsage = {
  readonly subscription: BilledSubscription;
  /** Stored running period of the subscription. */
  readonly current: Period;
  readonly usage_reset_period: UsageResetPeriod | null;
  /**
   * Whether the meter resets its usage. With `NEVER`, usage counts from the start of the subscription, whatever the reset period of the
   * limit.
   */
  readonly reset_usage: 'BILLING_PERIOD' | 'NEVER';
};

/** Interval around `now` whose usage counts against a limit. */
export function computeLimitWindow(now: Milliseconds, limited: LimitedUsage): ResetWindow {
  const { subscription, current, usage_reset_period: reset_period, reset_usage } = limited;
  if (reset_usage === 'NEVER') return computeResetWindow(now, { ...subscription, usage_reset_period: 'NEVER' });
  const then = selectPeriodGrid(reset_period, subscription, now);
  if (reset_period !== null && !isBillingPeriod(reset_period, subscription))
    return computeResetWindow(now, { ...then, usage_reset_period: reset_period });
  const period = periodContaining(now, current.start, periodRule(subscription)) ?? current;
  return { start: period.start, end: Math.min(period.end, findTrialEnd(now, subscription) ?? period.end) };
}

/** End of the trial that contains `at`. The first paid period begins at this end, even inside a calendar month. */
function findTrialEnd(at: Milliseconds, { trial_end_ms }: BilledSubscription): Milliseconds | null {
  return typeof trial_end_ms === 'number' && at < trial_end_ms ? trial_end_ms : null;
}

/** All intervals of a limit that overlap `range`. Each ends at the end of the range at the latest. */
export function listLimitWindows(range: Period, limited: Omit<LimitedUsage, 'current'>): Period[] {
  const { subscription, usage_reset_period: reset_period, reset_usage } = limited;
  if (reset_usage === 'NEVER' || reset_period === 'NEVER') return [{ start: subscription.start_ms, end: range.end }];
  return listWholeLimitWindows(range, subscription, reset_period).map(({ start, end }) => ({
    start,
    end: Math.min(end, range.end),
  }));
}

/** All intervals of a limit that overlap `range`, at their full length. Without a reset period they are the billing periods. */
export function listWholeLimitWindows(
  range: Period,
  subscription: BilledSubscription,
  reset_period: Exclude<UsageResetPeriod, 'NEVER'> | null = null,
): Period[] {
  const windows: Period[] = [];
  for (let at = range.start; at < range.end; ) {
    const then = selectPeriodGrid(reset_period, subscription, at);
    const { start, end } =
      reset_period === null || isBillingPeriod(reset_period, then)
        ? findBillingPeriod(at, then)
        : computeResetWindow(at, { ...then, end_ms: null, usage_reset_period: reset_period });
    // If the billing periods change inside the interval, the interval ends at the change.
    const last = Math.min(end!, (then === subscription ? null : periodGridEnd(subscription, at)) ?? end!);
    windows.push({ start, end: last });
    at = last;
  }
  return windows;
}

/**
 * Free units in one interval of a limit. In a short first billing period the limit is prorated like an advance charge, and rounded to whole
 * units. Any other interval has the whole limit (docs/rules/entitlements.md, "A short first period").
 */
export function computeLimitIn(
  limit: Decimal,
  start: Milliseconds,
  { subscription, usage_reset_period: reset_period, reset_usage }: Omit<LimitedUsage, 'current'>,
): Decimal {
  if (reset_usage === 'NEVER' || reset_period === 'NEVER') return limit;
  const then = applyPeriodGridAt(subscription, start);
  if (reset_period !== null && !isBillingPeriod(reset_period, then)) return limit;
  const whole = wholePeriod({ ...toBillingRule(then), period_start: start });
  if (start <= whole.start) return limit;
  return prorate(limit, computeShare({ start, end: whole.end }, whole)).toDecimalPlaces(0, Decimal.ROUND_HALF_UP);
}

/**
 * Selects the period grid of a reset period. A change of the billing periods does not move daily reset periods, unless they are the billing
 * periods.
 */
function selectPeriodGrid(reset_period: UsageResetPeriod | null, subscription: BilledSubscription, at: Milliseconds) {
  const then = applyPeriodGridAt(subscription, at);
  return reset_period === 'DAILY' && !isBillingPeriod(reset_period, then) ? subscription : then;
}

function toBillingRule(subscription: BilledSubscription): PeriodRule {
  return { ...periodRule(subscription), subscription_end: null };
}

/** Finds the billing period around an instant. A trial is a period of its own; the first period after it begins at its end. */
function findBillingPeriod(at: Milliseconds, then: BilledSubscription): Period {
  const ahead = findTrialEnd(at, then);
  const first = ahead === null ? Math.max(then.start_ms, then.trial_end_ms ?? then.start_ms) : then.start_ms;
  const { start, end } = findPeriod(at, first, toBillingRule(then));
  return { start, end: Math.min(end, ahead ?? end) };
}

/** Finds the period around an instant. For a period of one unit no iteration over earlier periods is needed. */
function findPeriod(at: Milliseconds, first: Milliseconds, rule: PeriodRule): Period {
  if (rule.billing_period_count > 1) return periodContaining(at, first, rule)!;
  const { start, end } = wholePeriod({ ...rule, period_start: at });
  return { start: Math.max(start, first), end };
}

type SubscriptionPeriodTerms = Pick<BilledSubscription, 'billing_period' | 'billing_period_count'>;

function isBillingPeriod(reset_period: UsageResetPeriod, own: SubscriptionPeriodTerms): boolean {
  return reset_period === own.billing_period && own.billing_period_count === 1;
}

/** Returns a key of the reset period. Limits with equal keys apply to equal intervals of a subscription. */
export function deriveResetPeriod(reset_period: UsageResetPeriod | null, own: SubscriptionPeriodTerms): string {
  if (reset_period !== null) return reset_period;
  return own.billing_period_count === 1 ? own.billing_period : `${own.billing_period_count} ${own.billing_period}`;
}

function toMidnight(instant: Milliseconds, timezone: string): Milliseconds {
  return firstInstantAt(timezone, Math.floor(toLocalMs(timezone, instant) / DAY_MS) * DAY_MS);
}
