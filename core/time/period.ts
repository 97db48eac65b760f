/**
 * Billing periods and anchors (pricing-and-invoicing §2.4; decisions §14): all date arithmetic is done in the
 * subscription's IANA timezone, periods are half-open [start, end), and the original anchor day is kept: after a clamp
 * to 28, 29 or 30 the next month returns to 31. Instants are milliseconds since 1970.
 */
import { Temporal } from 'temporal-polyfill';
import { FarthingError, invalid } from '../error.ts';
import { LAST_INSTANT } from './timestamp.ts';
import { checkTimezone, firstInstantAt } from './zone.ts';

export const RECURRING_PERIODS = ['MONTHLY', 'ANNUAL', 'WEEKLY', 'DAILY', 'QUARTERLY', 'HALF_YEARLY'] as const;
export type RecurringPeriod = (typeof RECURRING_PERIODS)[number];

export type PeriodRule = {
  readonly billing_anchor: number;
  readonly billing_period: RecurringPeriod;
  readonly billing_period_count: number;
  readonly timezone: string;
  /** The last period is cut here. */
  readonly subscription_end?: number | null;
};
export type Period = { readonly start: number; readonly end: number };

/** The end of the period that starts at `period_start`. */
export function nextPeriodEnd(rule: PeriodRule & { readonly period_start: number }): number {
  const { period_start, billing_anchor, billing_period_count, subscription_end } = rule;
  if (!Number.isInteger(billing_period_count) || billing_period_count < 1)
    throw invalid('billing_period_count', 'must be a whole number of at least 1');
  const endDate = END_DATE[rule.billing_period];
  if (endDate === undefined) throw invalid('billing_period', `${rule.billing_period} does not recur`);
  checkTimezone(rule.timezone);
  const shortest = (billing_period_count - 1) * DAYS_AT_LEAST[rule.billing_period] * 86_400_000;
  if (period_start + shortest > LAST_INSTANT) throw invalid('billing_period_count', PAST_THE_CALENDAR);

  const start = localTime(period_start, rule.timezone);
  const anchor = localTime(billing_anchor, rule.timezone);
  const end = atAnchorClock(endDate(start, anchor, billing_period_count), anchor);
  if (end <= period_start) throw new FarthingError('system_error', 'a billing period would not end after its start');
  const cut = cutAt(subscription_end, period_start, end);
  if (cut > LAST_INSTANT) throw invalid('billing_period', PAST_THE_CALENDAR);
  return cut;
}

const PAST_THE_CALENDAR = 'a period would end after the year 9999';

/** No period is shorter, the first one aside: counts that leave the calendar are told before dates are made of them. */
const DAYS_AT_LEAST: Record<RecurringPeriod, number> = {
  DAILY: 1,
  WEEKLY: 7,
  MONTHLY: 28,
  QUARTERLY: 89,
  HALF_YEARLY: 181,
  ANNUAL: 365,
};

/**
 * The anchor of calendar billing: the next local midnight, Monday, or first of month, quarter, half-year or year
 * strictly after the start.
 */
export function calendarAnchor(start: number, billing_period: RecurringPeriod, timezone: string): number {
  checkTimezone(timezone);
  const nextDate = CALENDAR_DATE[billing_period];
  if (nextDate === undefined) throw invalid('billing_period', `${billing_period} does not recur`);
  return startOfDay(nextDate(localTime(start, timezone).toPlainDate()), timezone);
}

/** The periods from `start` on, until the subscription's end or for ever; there is no cap on their number. */
export function* periodsFrom(start: number, rule: PeriodRule): Generator<Period> {
  const last = rule.subscription_end ?? Number.POSITIVE_INFINITY;
  for (let period_start = start; period_start < last; ) {
    const end = nextPeriodEnd({ ...rule, period_start });
    yield { start: period_start, end };
    period_start = end;
  }
}

/** The period that holds the instant; undefined before the start and from the subscription's end on. */
export function periodContaining(instant: number, start: number, rule: PeriodRule): Period | undefined {
  if (instant < start) return undefined;
  for (const period of periodsFrom(start, rule)) {
    if (instant < period.end) return period;
  }
  return undefined;
}

/** Whole local dates from one instant to another: 9 March 00:00 to 11 March 00:00 is 2, also across a clock change. */
export function calendarDays(start: number, end: number, timezone: string): number {
  checkTimezone(timezone);
  const from = localTime(start, timezone).toPlainDate();
  return from.until(localTime(end, timezone).toPlainDate(), { largestUnit: 'day' }).days;
}

type EndDate = (start: Temporal.ZonedDateTime, anchor: Temporal.ZonedDateTime, count: number) => Temporal.PlainDate;

/** The date on which a period ends; its clock time is the anchor's. */
const END_DATE: Record<RecurringPeriod, EndDate> = {
  DAILY: (start, _anchor, count) => start.toPlainDate().add({ days: count }),

  // On the anchor's weekday: whole weeks. Else to the next such weekday, plus the weeks that are left.
  WEEKLY: (start, anchor, count) => {
    const toAnchorDay = (anchor.dayOfWeek - start.dayOfWeek + 7) % 7;
    return start.toPlainDate().add({ days: toAnchorDay === 0 ? 7 * count : toAnchorDay + 7 * (count - 1) });
  },

  // Before the anchor's day in this month: a short first period up to it, whatever the count.
  MONTHLY: (start, anchor, count) => {
    const thisMonth = monthsOn(start, 0, anchor);
    return start.day < thisMonth.day ? thisMonth : monthsOn(start, count, anchor);
  },

  QUARTERLY: (start, anchor, count) => monthsUnlessBefore(start, anchor, 3 * count),
  HALF_YEARLY: (start, anchor, count) => monthsUnlessBefore(start, anchor, 6 * count),

  // Before the anchor's day in this year: the first period ends there; adding years would make it up to two years long.
  ANNUAL: (start, anchor, count) => {
    const thisYear = anchor.toPlainDate().with({ year: start.year }, { overflow: 'constrain' });
    const isAhead = atAnchorClock(thisYear, anchor) > start.epochMilliseconds;
    return isAhead ? thisYear : anchor.toPlainDate().with({ year: start.year + count }, { overflow: 'constrain' });
  },
};

function monthsUnlessBefore(start: Temporal.ZonedDateTime, anchor: Temporal.ZonedDateTime, months: number) {
  const isBefore = start.epochMilliseconds < anchor.epochMilliseconds;
  return isBefore ? anchor.toPlainDate() : monthsOn(start, months, anchor);
}

/** Months are counted from the start's month and the anchor's day is taken anew: a clamped day is never passed on. */
function monthsOn(start: Temporal.ZonedDateTime, months: number, anchor: Temporal.ZonedDateTime): Temporal.PlainDate {
  return start.toPlainDate().toPlainYearMonth().add({ months }).toPlainDate({ day: anchor.day });
}

type CalendarDate = (date: Temporal.PlainDate) => Temporal.PlainDate;

const CALENDAR_DATE: Record<RecurringPeriod, CalendarDate> = {
  DAILY: (date) => date.add({ days: 1 }),
  WEEKLY: (date) => date.add({ days: 8 - date.dayOfWeek }),
  MONTHLY: (date) => firstOfNext(date, 1),
  QUARTERLY: (date) => firstOfNext(date, 3),
  HALF_YEARLY: (date) => firstOfNext(date, 6),
  ANNUAL: (date) => firstOfNext(date, 12),
};

/** The first day of the next block of so many months; blocks are counted from January. */
function firstOfNext(date: Temporal.PlainDate, months: number): Temporal.PlainDate {
  const monthsIntoBlock = (date.month - 1) % months;
  return date.with({ day: 1 }).add({ months: months - monthsIntoBlock });
}

/** A clock time that a clock change skips moves on with the clock; of a repeated one the first is meant. */
function atAnchorClock(date: Temporal.PlainDate, anchor: Temporal.ZonedDateTime): number {
  if (date.equals(anchor.toPlainDate())) return anchor.epochMilliseconds;
  return date.toZonedDateTime({ timeZone: anchor.timeZoneId, plainTime: anchor.toPlainTime() }).epochMilliseconds;
}

function cutAt(subscription_end: number | null | undefined, period_start: number, end: number): number {
  if (subscription_end === undefined || subscription_end === null) return end;
  if (subscription_end <= period_start) throw invalid('subscription_end', 'lies at or before the start of the period');
  return Math.min(end, subscription_end);
}

function startOfDay(date: Temporal.PlainDate, timezone: string): number {
  return firstInstantAt(timezone, Date.UTC(date.year, date.month - 1, date.day));
}

function localTime(instant: number, timezone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(timezone);
}
