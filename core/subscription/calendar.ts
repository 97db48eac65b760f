/**
 * When a subscription starts, what its periods are anchored to and what its first period is
 * (docs/rules/periods.md, "Anniversary and calendar"). The start is kept to the millisecond.
 */

import { invalid } from '../error.ts';
import { calendarAnchor, nextPeriodEnd } from '../time/period.ts';
import { formatTimestamp } from '../time/timestamp.ts';
import { wallTime } from '../time/zone.ts';
import type { Subscription } from './record.ts';

export type CalendarTerms = Pick<
  Subscription,
  'billing_cycle' | 'billing_period' | 'billing_period_count' | 'timezone' | 'proration_behavior'
> & { start_date?: string | null; end_date?: string | null; billing_anchor?: string | null };

export type Calendar = Pick<
  Subscription,
  'start_date' | 'end_date' | 'billing_anchor' | 'current_period_start' | 'current_period_end'
>;

export function firstPeriod(terms: CalendarTerms, now: number): Calendar {
  const start = terms.start_date ? instantOf(terms.start_date) : now;
  const end = terms.end_date ? instantOf(terms.end_date) : null;
  if (end !== null && end <= start) throw invalid('end_date', 'must be after start_date');
  checkStart(start, terms, now);
  const anchor = anchorOf(start, terms);
  const rule = { ...terms, billing_anchor: anchor, subscription_end: end };
  return {
    start_date: formatTimestamp(start),
    end_date: end === null ? null : formatTimestamp(end),
    billing_anchor: formatTimestamp(anchor),
    current_period_start: formatTimestamp(start),
    current_period_end: formatTimestamp(nextPeriodEnd({ ...rule, period_start: start })),
  };
}

/** Timestamps of records and requests are text; those that come straight from the database may be dates. */
export function instantOf(timestamp: string | Date): number {
  return new Date(timestamp).getTime();
}

function anchorOf(start: number, terms: CalendarTerms): number {
  if (terms.billing_cycle === 'calendar') {
    if (terms.billing_anchor) throw invalid('billing_anchor', 'is accepted only when billing_cycle is anniversary');
    return calendarAnchor(start, terms.billing_period, terms.timezone);
  }
  return terms.billing_anchor ? instantOf(terms.billing_anchor) : start;
}

/** With create_prorations a start on an earlier local day is refused (docs/rules/proration.md, "A share of the whole period"). */
function checkStart(start: number, terms: CalendarTerms, now: number): void {
  if (terms.proration_behavior !== 'create_prorations') return;
  if (localDay(start, terms.timezone) < localDay(now, terms.timezone)) {
    throw invalid('start_date', 'must not lie in the past when proration_behavior is create_prorations');
  }
}

function localDay(instant: number, timezone: string): number {
  return Math.floor(wallTime(timezone, instant) / 86_400_000);
}
