/**
 * Finds the periods of a subscription that have ended at an instant; after a pause of the service these are several. Also computes the
 * payment due date of an invoice (docs/rules/invoices.md, "Due date").
 */
import { invalid } from '../foundation/error.ts';
import { DAY_MS } from '../foundation/time/durations.ts';
import { LAST_INSTANT, type Milliseconds } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';
import { type BilledSubscription, nextPeriod } from './charges.ts';

type DuePeriod = {
  readonly closed: Period;
  /** The period that follows; null when the subscription ends with the closed one. */
  readonly next: Period | null;
};

/** The period to invoice now, if the current one is over. If the subscription ends inside the current period, that period ends early. */
export function duePeriod(subscription: BilledSubscription, current: Period, nowMs: Milliseconds): DuePeriod | null {
  const closed = {
    start: current.start,
    end: Math.max(current.start, Math.min(current.end, subscription.end_ms ?? Infinity)),
  };
  if (closed.end > nowMs) return null;
  return { closed, next: nextPeriod(closed.end, subscription) };
}

/** Every period that has ended by now, oldest first. */
export function duePeriods(subscription: BilledSubscription, current: Period, nowMs: Milliseconds): DuePeriod[] {
  const due: DuePeriod[] = [];
  for (let period: Period | null = current; period !== null; ) {
    const found = duePeriod(subscription, period, nowMs);
    if (found === null) break;
    due.push(found);
    period = found.next;
  }
  return due;
}

/** Periods after the current one that have begun by now, oldest first. */
export function laterPeriods(subscription: BilledSubscription, current: Period, nowMs: Milliseconds): Period[] {
  return duePeriods(subscription, current, nowMs).flatMap(({ next }) => next ?? []);
}

/** Computes the due date. Payment terms such as `30 NET` take precedence over `dueDateDays`. */
export function dueDate(periodEndMs: number, terms: string | null | undefined, dueDateDays: number): number {
  if (terms === null || terms === undefined || terms === '') return daysAfter(periodEndMs, dueDateDays);
  const days = /^(\d+) NET$/i.exec(terms.trim())?.[1];
  if (days === undefined) throw invalid('payment_terms', `${JSON.stringify(terms)} is not a number of days and NET`);
  return daysAfter(periodEndMs, Number(days));
}

/** Adds days to an instant, at most up to the last instant of the calendar. */
function daysAfter(at: number, days: number): number {
  return Math.min(at + days * DAY_MS, LAST_INSTANT);
}
