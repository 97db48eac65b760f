/**
 * Billing periods and anchors (docs/rules/periods.md, "The anchor's grid"). Every instant of the grid is counted from the
 * anchor itself. After a clamp to 28, 29 or 30 the next month therefore returns to 31 (docs/rules/periods.md, "Short
 * months"). Periods are half-open [start, end). Instants are milliseconds since 1970.
 */
import { Temporal } from 'temporal-polyfill';
import { invalid } from '../error.ts';
import { DAY_MS } from './durations.ts';
import { daysSince1970, LAST_INSTANT, type Milliseconds } from './instant.ts';
import { checkTimezone, firstInstantAt, instantAt, toLocalMs } from './zone.ts';

export const RECURRING_PERIODS = ['MONTHLY', 'ANNUAL', 'WEEKLY', 'DAILY', 'QUARTERLY', 'HALF_YEARLY'] as const;
export type RecurringPeriod = (typeof RECURRING_PERIODS)[number];

export type PeriodRule = {
  readonly billing_anchor: Milliseconds;
  readonly billing_period: RecurringPeriod;
  readonly billing_period_count: number;
  readonly timezone: string;
  /** The end of the last period. */
  readonly subscription_end?: Milliseconds | null;
};
export type Period = { readonly start: Milliseconds; readonly end: Milliseconds };

/** Returns the end of the period that begins at `period_start`, cut at the end of the subscription. Refuses an end after the year 9999. */
export function nextPeriodEnd(rule: PeriodRule & { readonly period_start: Milliseconds }): number {
  const { period_start, subscription_end } = rule;
  const cut = cutAt(subscription_end, period_start, wholePeriod(rule).end);
  if (cut > LAST_INSTANT) throw invalid('billing_period', PAST_THE_CALENDAR);
  return cut;
}

/**
 * The full period of the grid (count × unit) that ends where the period from `period_start` would end without a cut. It is longer than that
 * period only if the anchor shortens a first period.
 */
export function wholePeriod(rule: PeriodRule & { readonly period_start: Milliseconds }): Period {
  const { period_start, billing_anchor, billing_period, billing_period_count: count, timezone } = rule;
  if (!Number.isInteger(count) || count < 1)
    throw invalid('billing_period_count', 'must be a whole number of at least 1');
  const unit = UNITS[billing_period];
  if (unit === undefined) throw invalid('billing_period', `${billing_period} does not recur`);
  checkTimezone(timezone);
  const shortest = (count - 1) * unit.days_at_least * DAY_MS;
  if (period_start + shortest > LAST_INSTANT) throw invalid('billing_period_count', PAST_THE_CALENDAR);

  const grid = new Grid(billing_anchor, unit, timezone);
  const before = grid.lastUpTo(period_start);
  const beginsToday = localDay(grid.at(before), timezone) === localDay(period_start, timezone);
  const last = beginsToday ? before + count : before + 1;
  return { start: grid.at(last - count), end: grid.at(last) };
}

const PAST_THE_CALENDAR = 'a period would end after the year 9999';

/** Length of a billing period, either in days or in months. */
type PeriodUnit = {
  readonly days?: number;
  readonly months?: number;
  /** Minimum length, used to reject a count that leaves the calendar before dates are computed. */
  readonly days_at_least: number;
};

const UNITS: Record<RecurringPeriod, PeriodUnit> = {
  DAILY: { days: 1, days_at_least: 1 },
  WEEKLY: { days: 7, days_at_least: 7 },
  MONTHLY: { months: 1, days_at_least: 28 },
  QUARTERLY: { months: 3, days_at_least: 89 },
  HALF_YEARLY: { months: 6, days_at_least: 181 },
  ANNUAL: { months: 12, days_at_least: 365 },
};

export function leastDays(billing_period: RecurringPeriod): number {
  return UNITS[billing_period].days_at_least;
}

/** The instants k units away from the anchor, for every integer k. */
class Grid {
  readonly #anchor: Milliseconds;
  readonly #unit: PeriodUnit;
  readonly #timezone: string;
  /** Local time of the anchor. */
  readonly #local_ms: number;

  constructor(anchor: Milliseconds, unit: PeriodUnit, timezone: string) {
    this.#anchor = anchor;
    this.#unit = unit;
    this.#timezone = timezone;
    this.#local_ms = toLocalMs(timezone, anchor);
  }

  /**
   * Computes the k-th instant. A local time that a clock change skips moves forward with the clock; of a repeated local time, the first is
   * used.
   */
  at(k: number): number {
    if (k === 0) return this.#anchor;
    const { days = 0, months = 0 } = this.#unit;
    return instantAt(this.#timezone, monthsLater(this.#local_ms, months * k) + days * k * DAY_MS);
  }

  /** Returns the k of the last instant that is not after `instant`. */
  lastUpTo(instant: Milliseconds): number {
    let k = this.#near(toLocalMs(this.#timezone, instant));
    while (this.at(k) > instant) k--;
    while (this.at(k + 1) <= instant) k++;
    return k;
  }

  /**
   * Estimates k from the calendar alone. Because of the time of day, the day of the month or a clock change, the true value may be one
   * less.
   */
  #near(localMs: number): number {
    if (this.#unit.days) return Math.floor((toDay(localMs) - toDay(this.#local_ms)) / this.#unit.days);
    return Math.floor((toMonth(localMs) - toMonth(this.#local_ms)) / this.#unit.months!);
  }
}

/** Adds months. A day that the month does not have becomes the last day of the month. */
function monthsLater(localMs: number, months: number): number {
  if (months === 0) return localMs;
  const month = toMonth(localMs) + months;
  const day = Math.min(new Date(localMs).getUTCDate(), monthStart(month + 1) - monthStart(month));
  return (monthStart(month) + day - 1) * DAY_MS + (localMs - toDay(localMs) * DAY_MS);
}

/** Months since the year 0. */
function toMonth(localMs: number): number {
  const date = new Date(localMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

function monthStart(month: number): number {
  const year = Math.floor(month / 12);
  return daysSince1970(year, month - year * 12 + 1, 1);
}

/** The local date in days since 1970. */
export function localDay(instant: Milliseconds, timezone: string): number {
  return toDay(toLocalMs(timezone, instant));
}

function toDay(localMs: number): number {
  return Math.floor(localMs / DAY_MS);
}

/**
 * The anchor of calendar billing: the next local midnight, Monday, or first of month, quarter, half-year or year
 * strictly after the start.
 */
export function calendarAnchor(start: Milliseconds, billing_period: RecurringPeriod, timezone: string): number {
  checkTimezone(timezone);
  const nextDate = CALENDAR_DATE[billing_period];
  if (nextDate === undefined) throw invalid('billing_period', `${billing_period} does not recur`);
  return dayStart(nextDate(toZonedDateTime(start, timezone).toPlainDate()), timezone);
}

/** Yields the periods from `start` until the subscription's end, or endlessly; there is no cap on their number. */
export function* periodsFrom(start: Milliseconds, rule: PeriodRule): Generator<Period> {
  const last = rule.subscription_end ?? Number.POSITIVE_INFINITY;
  for (let period_start = start; period_start < last; ) {
    const end = nextPeriodEnd({ ...rule, period_start });
    yield { start: period_start, end };
    period_start = end;
  }
}

/** Finds the period that contains an instant; undefined before the start, and from the end of the subscription on. */
export function periodContaining(instant: Milliseconds, start: Milliseconds, rule: PeriodRule): Period | undefined {
  if (instant < start) return undefined;
  for (const period of periodsFrom(start, rule)) {
    if (instant < period.end) return period;
  }
  return undefined;
}

/** Number of local dates from one instant to another: 9 March 00:00 to 11 March 00:00 is 2, also across a clock change. */
export function calendarDays(start: Milliseconds, end: Milliseconds, timezone: string): number {
  checkTimezone(timezone);
  return localDay(end, timezone) - localDay(start, timezone);
}

type CalendarDate = (date: Temporal.PlainDate) => Temporal.PlainDate;

const CALENDAR_DATE: Record<RecurringPeriod, CalendarDate> = {
  DAILY: (date) => date.add({ days: 1 }),
  WEEKLY: (date) => date.add({ days: 8 - date.dayOfWeek }),
  MONTHLY: (date) => nextBlockStart(date, 1),
  QUARTERLY: (date) => nextBlockStart(date, 3),
  HALF_YEARLY: (date) => nextBlockStart(date, 6),
  ANNUAL: (date) => nextBlockStart(date, 12),
};

/** The first day of the next block of `months` months; blocks are counted from January. */
function nextBlockStart(date: Temporal.PlainDate, months: number): Temporal.PlainDate {
  const monthsIntoBlock = (date.month - 1) % months;
  return date.with({ day: 1 }).add({ months: months - monthsIntoBlock });
}

function cutAt(
  subscription_end: Milliseconds | null | undefined,
  period_start: Milliseconds,
  end: Milliseconds,
): number {
  if (subscription_end === undefined || subscription_end === null) return end;
  if (subscription_end <= period_start) throw invalid('subscription_end', 'lies at or before the start of the period');
  return Math.min(end, subscription_end);
}

function dayStart(date: Temporal.PlainDate, timezone: string): number {
  return firstInstantAt(timezone, Date.UTC(date.year, date.month - 1, date.day));
}

function toZonedDateTime(instant: Milliseconds, timezone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(timezone);
}
