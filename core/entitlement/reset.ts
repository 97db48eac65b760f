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
export function resetWindow(now: Milliseconds, rule: ResetRule): ResetWindow {
  const { start_ms, end_ms, billing_anchor_ms, timezone, usage_reset_period } = rule;
  if (now < start_ms) throw invalid('now', 'lies before the start of the subscription');
  if (usage_reset_period === 'NEVER') return { start: start_ms, end: null };
  const { start, end } = wholePeriod({
    period_start: now,
    billing_anchor: midnightOf(billing_anchor_ms, timezone),
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
export function limitWindow(now: Milliseconds, limited: LimitedUsage): ResetWindow {
  const { subscription, current, usage_reset_period: stated, reset_usage } = limited;
  if (reset_usage === 'NEVER') return resetWindow(now, { ...subscription, usage_reset_period: 'NEVER' });
  const then = gridOf(stated, subscription, now);
  if (stated !== null && !isBillingPeriod(stated, subscription))
    return resetWindow(now, { ...then, usage_reset_period: stated });
  const period = periodContaining(now, current.start, periodRule(subscription)) ?? current;
  return { start: period.start, end: Math.min(period.end, trialAhead(now, subscription) ?? period.end) };
}

/** Where the trial ends in which an instant lies: the first paid period begins there, also inside a month of the calendar. */
function trialAhead(at: Milliseconds, { trial_end_ms }: BilledSubscription): Milliseconds | null {
  return typeof trial_end_ms === 'number' && at < trial_end_ms ? trial_end_ms : null;
}

/** Every stretch of a limit that shares an instant with a time, from where it begins until it or the time ends. */
export function limitWindowsWithin(asked: Period, limited: Omit<LimitedUsage, 'current'>): Period[] {
  const { subscription, usage_reset_period: stated, reset_usage } = limited;
  if (reset_usage === 'NEVER' || stated === 'NEVER') return [{ start: subscription.start_ms, end: asked.end }];
  return wholeWindowsWithin(asked, subscription, stated).map(({ start, end }) => ({
    start,
    end: Math.min(end, asked.end),
  }));
}

/** The same, each until it ends: the billing periods where no reset period is stated. */
export function wholeWindowsWithin(
  asked: Period,
  subscription: BilledSubscription,
  stated: Exclude<UsageResetPeriod, 'NEVER'> | null = null,
): Period[] {
  const windows: Period[] = [];
  for (let at = asked.start; at < asked.end; ) {
    const then = gridOf(stated, subscription, at);
    const { start, end } =
      stated === null || isBillingPeriod(stated, then)
        ? billingPeriodAt(at, then)
        : resetWindow(at, { ...then, end_ms: null, usage_reset_period: stated });
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
export function limitIn(
  limit: Decimal,
  start: Milliseconds,
  { subscription, usage_reset_period: stated, reset_usage }: Omit<LimitedUsage, 'current'>,
): Decimal {
  if (reset_usage === 'NEVER' || stated === 'NEVER') return limit;
  const then = applyPeriodGridAt(subscription, start);
  if (stated !== null && !isBillingPeriod(stated, then)) return limit;
  const whole = wholePeriod({ ...billingRule(then), period_start: start });
  if (start <= whole.start) return limit;
  return prorate(limit, computeShare({ start, end: whole.end }, whole)).toDecimalPlaces(0, Decimal.ROUND_HALF_UP);
}

/** Days are days in every grid. */
function gridOf(stated: UsageResetPeriod | null, subscription: BilledSubscription, at: Milliseconds) {
  const then = applyPeriodGridAt(subscription, at);
  return stated === 'DAILY' && !isBillingPeriod(stated, then) ? subscription : then;
}

function billingRule(subscription: BilledSubscription): PeriodRule {
  return { ...periodRule(subscription), subscription_end: null };
}

/** The trial is the period of what lies in it; behind it the first period begins with its end. */
function billingPeriodAt(at: Milliseconds, then: BilledSubscription): Period {
  const ahead = trialAhead(at, then);
  const first = ahead === null ? Math.max(then.start_ms, then.trial_end_ms ?? then.start_ms) : then.start_ms;
  const { start, end } = periodAt(at, first, billingRule(then));
  return { start, end: Math.min(end, ahead ?? end) };
}

/** Of periods of one unit the one around an instant is found without those before it. */
function periodAt(at: Milliseconds, first: Milliseconds, rule: PeriodRule): Period {
  if (rule.billing_period_count > 1) return periodContaining(at, first, rule)!;
  const { start, end } = wholePeriod({ ...rule, period_start: at });
  return { start: Math.max(start, first), end };
}

type OwnPeriod = Pick<BilledSubscription, 'billing_period' | 'billing_period_count'>;

function isBillingPeriod(stated: UsageResetPeriod, own: OwnPeriod): boolean {
  return stated === own.billing_period && own.billing_period_count === 1;
}

/** Limits with the same one hold for the same stretches of a subscription. */
export function resetPeriodOf(stated: UsageResetPeriod | null, own: OwnPeriod): string {
  if (stated !== null) return stated;
  return own.billing_period_count === 1 ? own.billing_period : `${own.billing_period_count} ${own.billing_period}`;
}

const DAY_MS = 86_400_000;

function midnightOf(instant: Milliseconds, timezone: string): Milliseconds {
  return firstInstantAt(timezone, Math.floor(toLocalMs(timezone, instant) / DAY_MS) * DAY_MS);
}
