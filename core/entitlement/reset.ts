/**
 * When usage begins again from 0 against a limit (docs/rules/entitlements.md, "Reset periods"). A reset period counts whole
 * local days: it begins at midnight on the grid of the anchor's date. One that states none, and one that is just the billing
 * period, is the billing period to the instant, so that a limit and an invoice are about the same usage.
 */
import { type BilledSubscription, periodRule } from '../billing/charges.ts';
import { applyPeriodGridAt, periodGridEnd } from '../billing/earlier-periods.ts';
import { computeShare, prorate } from '../billing/proration.ts';
import { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import type { Milliseconds } from '../time/instant.ts';
import { type Period, type PeriodRule, periodContaining, wholePeriod } from '../time/period.ts';
import { firstInstantAt, toLocalMs } from '../time/zone.ts';
import type { UsageResetPeriod } from './record.ts';

/** Half-open; without an end usage never begins again. */
export type ResetWindow = { readonly start: Milliseconds; readonly end: Milliseconds | null };

export type ResetRule = Pick<BilledSubscription, 'start_ms' | 'end_ms' | 'billing_anchor_ms' | 'timezone'> & {
  readonly usage_reset_period: UsageResetPeriod;
};

/** The stretch around `now` in which usage adds up, cut to the life of the subscription. */
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

export type LimitedUsage = {
  readonly subscription: BilledSubscription;
  /** The period of the subscription that is stored. */
  readonly current: Period;
  readonly usage_reset_period: UsageResetPeriod | null;
  /** A meter that never resets is counted from the start of the subscription, whatever the limit says. */
  readonly reset_usage: 'BILLING_PERIOD' | 'NEVER';
};

/** The stretch around `now` whose usage a limit is about. */
export function computeLimitWindow(now: Milliseconds, limited: LimitedUsage): ResetWindow {
  const { subscription, current, usage_reset_period: reset_period, reset_usage } = limited;
  if (reset_usage === 'NEVER') return computeResetWindow(now, { ...subscription, usage_reset_period: 'NEVER' });
  const then = selectPeriodGrid(reset_period, subscription, now);
  if (reset_period !== null && !isBillingPeriod(reset_period, subscription))
    return computeResetWindow(now, { ...then, usage_reset_period: reset_period });
  const period = periodContaining(now, current.start, periodRule(subscription)) ?? current;
  return { start: period.start, end: Math.min(period.end, findTrialEnd(now, subscription) ?? period.end) };
}

/** Where the trial ends in which an instant lies: the first paid period begins there, also inside a month of the calendar. */
function findTrialEnd(at: Milliseconds, { trial_end_ms }: BilledSubscription): Milliseconds | null {
  return typeof trial_end_ms === 'number' && at < trial_end_ms ? trial_end_ms : null;
}

/** Every stretch of a limit that shares an instant with a time, from where it begins until it or the time ends. */
export function listLimitWindows(range: Period, limited: Omit<LimitedUsage, 'current'>): Period[] {
  const { subscription, usage_reset_period: reset_period, reset_usage } = limited;
  if (reset_usage === 'NEVER' || reset_period === 'NEVER') return [{ start: subscription.start_ms, end: range.end }];
  return listWholeLimitWindows(range, subscription, reset_period).map(({ start, end }) => ({
    start,
    end: Math.min(end, range.end),
  }));
}

/** The same, each until it ends: the billing periods where no reset period is stated. */
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
    // What began anew inside a period cut it.
    const last = Math.min(end!, (then === subscription ? null : periodGridEnd(subscription, at)) ?? end!);
    windows.push({ start, end: last });
    at = last;
  }
  return windows;
}

/**
 * How much is free in a stretch of a limit: of a billing period that is short at its beginning the share that an advance charge has,
 * in whole units; else all of it (docs/rules/entitlements.md, "A short first period").
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

/** Days are days in every grid. */
function selectPeriodGrid(reset_period: UsageResetPeriod | null, subscription: BilledSubscription, at: Milliseconds) {
  const then = applyPeriodGridAt(subscription, at);
  return reset_period === 'DAILY' && !isBillingPeriod(reset_period, then) ? subscription : then;
}

function toBillingRule(subscription: BilledSubscription): PeriodRule {
  return { ...periodRule(subscription), subscription_end: null };
}

/** The trial is the period of what lies in it; behind it the first period begins with its end. */
function findBillingPeriod(at: Milliseconds, then: BilledSubscription): Period {
  const ahead = findTrialEnd(at, then);
  const first = ahead === null ? Math.max(then.start_ms, then.trial_end_ms ?? then.start_ms) : then.start_ms;
  const { start, end } = findPeriod(at, first, toBillingRule(then));
  return { start, end: Math.min(end, ahead ?? end) };
}

/** Of periods of one unit the one around an instant is found without those before it. */
function findPeriod(at: Milliseconds, first: Milliseconds, rule: PeriodRule): Period {
  if (rule.billing_period_count > 1) return periodContaining(at, first, rule)!;
  const { start, end } = wholePeriod({ ...rule, period_start: at });
  return { start: Math.max(start, first), end };
}

type SubscriptionPeriodTerms = Pick<BilledSubscription, 'billing_period' | 'billing_period_count'>;

function isBillingPeriod(reset_period: UsageResetPeriod, own: SubscriptionPeriodTerms): boolean {
  return reset_period === own.billing_period && own.billing_period_count === 1;
}

/** Limits with the same one hold for the same stretches of a subscription. */
export function deriveResetPeriod(reset_period: UsageResetPeriod | null, own: SubscriptionPeriodTerms): string {
  if (reset_period !== null) return reset_period;
  return own.billing_period_count === 1 ? own.billing_period : `${own.billing_period_count} ${own.billing_period}`;
}

const DAY_MS = 86_400_000;

function toMidnight(instant: Milliseconds, timezone: string): Milliseconds {
  return firstInstantAt(timezone, Math.floor(toLocalMs(timezone, instant) / DAY_MS) * DAY_MS);
}
