/**
 * Derives the start, the anchor and the first period of a subscription (docs/rules/periods.md, "Anniversary and
 * calendar"). The start has millisecond precision.
 */

import { invalid } from '../foundation/error.ts';
import { DAY_MS } from '../foundation/time/durations.ts';
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import { calendarAnchor, leastDays, localDay, nextPeriodEnd } from '../foundation/time/period.ts';
import type { Subscription } from './record.ts';

export type CalendarTerms = Pick<
  Subscription,
  'billing_cycle' | 'billing_period' | 'billing_period_count' | 'timezone' | 'proration_behavior'
> & { start_date?: string | null; end_date?: string | null; billing_anchor?: string | null };

export type SubscriptionCalendar = Pick<
  Subscription,
  'start_date' | 'end_date' | 'billing_anchor' | 'current_period_start' | 'current_period_end'
>;

export function planFirstPeriod(terms: CalendarTerms, now: Milliseconds): SubscriptionCalendar {
  const start = terms.start_date ? toInstant(terms.start_date) : now;
  const end = terms.end_date ? toInstant(terms.end_date) : null;
  if (end !== null && end <= start) throw invalid('end_date', 'must be after start_date');
  checkStart(start, terms, now);
  checkPast(start, terms, now);
  const anchor = deriveAnchor(start, terms);
  const rule = { ...terms, billing_anchor: anchor, subscription_end: end };
  return {
    start_date: formatMs(start),
    end_date: end === null ? null : formatMs(end),
    billing_anchor: formatMs(anchor),
    current_period_start: formatMs(start),
    current_period_end: formatMs(nextPeriodEnd({ ...rule, period_start: start })),
  };
}

export function deriveAnchor(start: Milliseconds, terms: CalendarTerms): number {
  if (terms.billing_cycle === 'calendar') {
    if (terms.billing_anchor) throw invalid('billing_anchor', 'is accepted only when billing_cycle is anniversary');
    return calendarAnchor(start, terms.billing_period, terms.timezone);
  }
  return terms.billing_anchor ? toInstant(terms.billing_anchor) : start;
}

/**
 * Instant at which a subscription with a future start opens: its start, or the start of its trial. Null if that instant
 * has passed.
 */
export function findOpening({ current_period_start }: Pick<Subscription, 'current_period_start'>, now: Milliseconds) {
  return toInstant(current_period_start) > now ? current_period_start : null;
}

/**
 * Refuses a start before the current local day if proration_behavior is create_prorations (docs/rules/proration.md, "A share of the whole
 * period").
 */
function checkStart(start: Milliseconds, terms: CalendarTerms, now: Milliseconds): void {
  if (terms.proration_behavior !== 'create_prorations') return;
  if (localDay(start, terms.timezone) < localDay(now, terms.timezone)) {
    throw invalid('start_date', 'must not lie in the past when proration_behavior is create_prorations');
  }
}

/** Maximum number of past periods of a new subscription, because each gets an invoice. It equals about 13 years of a daily subscription. */
const PAST_PERIODS_MAX = 5_000;

function checkPast(
  start: Milliseconds,
  { billing_period, billing_period_count }: CalendarTerms,
  now: Milliseconds,
): void {
  if ((now - start) / (DAY_MS * leastDays(billing_period) * billing_period_count) > PAST_PERIODS_MAX)
    throw invalid('start_date', `must not lie more than ${PAST_PERIODS_MAX} billing periods in the past`);
}
