/**
 * A trial is an interval before the first paid period (docs/rules/subscriptions.md, "Trials"). If the request has
 * neither days nor dates, the plan's recurring fixed prices define the days and must agree. N days are calendar days at
 * the same local time, also across a clock change. The trial is the subscription's period; the paid periods are
 * anchored at its end.
 */

import type { Price } from '../catalog/price/record.ts';
import { buildStateError, invalid } from '../foundation/error.ts';
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import { calendarDays, nextPeriodEnd, type Period } from '../foundation/time/period.ts';
import { type CalendarTerms, deriveAnchor, type SubscriptionCalendar } from './calendar.ts';
import type { TrialEndParams } from './modification.ts';
import type { CreateSubscription, Subscription } from './record.ts';

type TrialTerms = Pick<CreateSubscription, 'trial_period_days' | 'trial_start' | 'trial_end'>;

/** Checks that need neither the plan nor the start. */
export function checkTrialTerms({ trial_period_days, trial_start, trial_end }: TrialTerms): void {
  if (trial_period_days && (trial_start || trial_end)) {
    throw invalid('trial_period_days', 'cannot be combined with trial_start and trial_end');
  }
  if (Boolean(trial_start) !== Boolean(trial_end)) throw invalid('trial_start', 'comes together with trial_end');
  if (!trial_start || !trial_end) return;
  if (toInstant(trial_end) <= toInstant(trial_start)) throw invalid('trial_end', 'must be after trial_start');
}

export function planTrial(
  terms: TrialTerms,
  { start, timezone, prices }: { start: Milliseconds; timezone: string; prices: readonly Price[] },
): Period | null {
  if (terms.trial_start && terms.trial_end) return parseTrial(terms.trial_start, terms.trial_end, start);
  const days = deriveTrialDays(terms, prices);
  return days === 0 ? null : { start, end: addTrialDays(start, days, timezone) };
}

function parseTrial(trial_start: string, trial_end: string, start: Milliseconds): Period {
  const trial = { start: toInstant(trial_start), end: toInstant(trial_end) };
  if (trial.start > start) throw invalid('trial_start', 'must not be after start_date');
  if (trial.end < start) throw invalid('trial_end', 'must not be before start_date');
  return trial;
}

/** Trial days of the request, else those that the recurring fixed prices agree on. Usage prices do not count. */
function deriveTrialDays(terms: Pick<TrialTerms, 'trial_period_days'>, prices: readonly Price[]): number {
  if (terms.trial_period_days !== null) return terms.trial_period_days;
  const priceTrialDays = prices
    .filter((price) => price.type === 'FIXED' && price.billing_period !== 'ONETIME')
    .map((price) => price.trial_period_days);
  const [first = 0, ...others] = priceTrialDays;
  if (others.some((days) => days !== first)) {
    throw invalid('trial_period_days', "the plan's recurring fixed prices do not agree on it: state it", {
      stated: priceTrialDays,
    });
  }
  return first;
}

function addTrialDays(start: Milliseconds, days: number, timezone: string): Milliseconds {
  const day = { billing_period: 'DAILY', billing_period_count: days, timezone } as const;
  return nextPeriodEnd({ ...day, billing_anchor: start, period_start: start });
}

export function applyTrial(
  calendar: SubscriptionCalendar,
  trial: Period | null,
  terms: CalendarTerms,
): SubscriptionCalendar & Pick<Subscription, 'trial_start' | 'trial_end'> {
  if (trial === null) return { ...calendar, trial_start: null, trial_end: null };
  return {
    ...calendar,
    ...computeTrialDates(trial, { ...terms, end_date: calendar.end_date }),
    current_period_start: formatMs(trial.start),
    trial_start: formatMs(trial.start),
  };
}

/** Dates that follow from the end of a trial: its period, and the anchor of the paid periods. */
function computeTrialDates(trial: Period, terms: CalendarTerms): TrialDates {
  const last = terms.end_date ? toInstant(terms.end_date) : Number.POSITIVE_INFINITY;
  return {
    billing_anchor: formatMs(deriveAnchor(trial.end, terms)),
    current_period_end: formatMs(Math.min(trial.end, last)),
    trial_end: formatMs(trial.end),
  };
}
type TrialDates = Pick<Subscription, 'billing_anchor' | 'current_period_end' | 'trial_end'>;

/** Changed dates of a subscription whose trial ends at another instant. */
export function computeTrialEnding(subscription: Subscription, at: Milliseconds): TrialDates {
  const start = toInstant(subscription.trial_start ?? subscription.start_date);
  return computeTrialDates({ start, end: at }, { ...subscription, billing_anchor: findRequestedAnchor(subscription) });
}

export function parseTrialEnd(
  { action, new_trial_end }: TrialEndParams,
  subscription: Subscription,
  now: Milliseconds,
): Milliseconds {
  const field = 'trial_end_params.new_trial_end';
  const { subscription_status: status, start_date, trial_start, trial_end } = subscription;
  if (status !== 'trialing' || !trial_start || !trial_end)
    throw buildStateError('subscription_status', `a subscription that is ${status} has no trial to end`);
  if (subscription.cancel_at_period_end)
    throw buildStateError('cancel_at_period_end', 'a cancellation at the end of the trial is scheduled: undo it first');
  if (toInstant(trial_end) <= now) throw buildStateError('trial_end', 'the trial is over', { trial_end });
  if (action === 'immediate' && new_trial_end) throw invalid(field, 'belongs to scheduled_date');
  if (action === 'scheduled_date' && !new_trial_end) throw invalid(field, 'is required for scheduled_date');
  const at = new_trial_end ? toInstant(new_trial_end) : now;
  if (new_trial_end && at <= now) throw invalid(field, 'must lie in the future for scheduled_date');
  const begins = Math.max(toInstant(trial_start), toInstant(start_date));
  if (at < begins) throw invalid(field, 'must not lie before the start of the subscription and of its trial');
  return at;
}

/**
 * Finds the anchor after a trial changes. An explicit anchor does not change. A default anchor equals the start or the
 * end of the trial and moves with it. With calendar billing the calendar defines the anchor.
 */
export function findRequestedAnchor({
  billing_cycle,
  billing_anchor,
  start_date,
  trial_end,
}: Subscription): string | null {
  if (billing_cycle === 'calendar') return null;
  const followed = [start_date, trial_end].some((date) => date && toInstant(date) === toInstant(billing_anchor));
  return followed ? null : billing_anchor;
}

/**
 * Trial of a draft after its start moves. It has an equal number of days; a trial of no whole number of days has an
 * equal duration.
 */
export function moveTrial(draft: Subscription, start: Milliseconds): Period | null {
  if (!draft.trial_start || !draft.trial_end) return null;
  const trial = { start: toInstant(draft.trial_start), end: toInstant(draft.trial_end) };
  const began = start - (toInstant(draft.start_date) - trial.start);
  const { timezone } = draft;
  const days = calendarDays(trial.start, trial.end, timezone);
  const isWhole = days > 0 && addTrialDays(trial.start, days, timezone) === trial.end;
  return { start: began, end: isWhole ? addTrialDays(began, days, timezone) : began + (trial.end - trial.start) };
}
