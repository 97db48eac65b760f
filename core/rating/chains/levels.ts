/**
 * A level (WEIGHTED_SUM) is billed by its integral over time, divided by the length of the whole billing period (docs/rules/metering.md,
 * "Levels over time"). 10 GB all month are 10 GB-months; 10 GB for half of the month are 5, also if the billed period is cut to that half.
 * The integral of an interval is the one until its end less the one until its start. Both are measured from the start of the billing
 * period, or of the subscription if the meter never resets.
 */
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { FarthingError } from '../../foundation/error.ts';
import { US_PER_MS } from '../../foundation/time/instant.ts';
import { type Period, periodsFrom } from '../../foundation/time/period.ts';
import { QUANTITY_PLACES } from '../../metering/quantity.ts';
import { type BilledItem, type BilledSubscription, hasOwnPeriods, itemRule, levelPeriod } from '../charges.ts';
import { splitByPeriodGrid } from '../earlier-periods.ts';

/** A query for the integral of a level, from the instant at which its measurement begins to a later instant. */
export type LevelReading = {
  readonly window: Period;
  /** The billing period of the reading. */
  readonly period: Period;
  readonly whole: Period;
  /** True if the reading ends at the start of the queried interval; such a reading is subtracted. */
  readonly isBefore: boolean;
};

/** Readings from which the level of an interval is computed; the interval may span several billing periods. */
export function levelReadings(time: Period, item: BilledItem, subscription: BilledSubscription): LevelReading[] {
  return splitByPeriodGrid(time, subscription).flatMap(([part, then]) =>
    periodsWithin(part, item, then).flatMap((period) => {
      const { whole, begins, level_since } = levelPeriod(period, item, then);
      const since = item.reset_usage === 'NEVER' ? subscription.start_ms : level_since;
      const start = Math.max(part.start, period.start, since);
      const end = Math.min(part.end, period.end);
      if (start >= end) return [];
      const reading = { period: { start: begins, end: period.end }, whole };
      const until = { ...reading, window: { start: since, end }, isBefore: false };
      return start > since ? [until, { ...reading, window: { start: since, end: start }, isBefore: true }] : [until];
    }),
  );
}

/** Billing periods of an item that intersect an interval. */
export function periodsWithin(time: Period, item: BilledItem, subscription: BilledSubscription): Period[] {
  const rule = itemRule(item, subscription);
  const first = hasOwnPeriods(item, subscription) ? Math.min(item.start_ms, time.start) : subscription.start_ms;
  const periods: Period[] = [];
  for (const period of periodsFrom(first, rule)) {
    if (period.start >= time.end) break;
    if (period.end > time.start) periods.push(period);
  }
  return periods;
}

type LevelReadingResult = { readonly event_count: number; readonly integral?: Decimal | undefined };

type IntegratedLevel = {
  /** Integral of the level in units × whole billing periods. */
  readonly quantity: Decimal;
  /** Units × microseconds; exact if the interval lies in one billing period. */
  readonly integral: Decimal;
  readonly event_count: number;
};

/** Integrates a level. `answers` are the results of the readings, in their order. */
export function integrateLevel(
  readings: readonly LevelReading[],
  answers: readonly LevelReadingResult[],
): IntegratedLevel {
  const [first] = readings;
  const parts = readings.map(({ whole, isBefore }, index) => {
    const { integral, event_count } = answers[index]!;
    if (!integral) throw new FarthingError('system_error', 'a level was read of a meter that does not integrate');
    const added = isBefore ? integral.negated() : integral;
    return { added, length: whole.end - whole.start, event_count: isBefore ? 0 : event_count };
  });
  if (!first) return { quantity: ZERO, integral: ZERO, event_count: 0 };
  const length = first.whole.end - first.whole.start;
  const alike = sumDecimals(parts.filter((part) => part.length === length).map(({ added }) => added));
  const others = parts.filter((part) => part.length !== length);
  const integral = sumDecimals([alike, ...others.map(({ added, length: own }) => added.times(length).dividedBy(own))]);
  const quantity = integral.dividedBy(new Decimal(length).times(US_PER_MS)).toDecimalPlaces(QUANTITY_PLACES);
  const starts = new Set(readings.map(({ window }) => window.start));
  // If the level never resets, all readings begin at one instant and count the same events, so the largest count applies.
  const counted = parts.map(({ event_count }) => event_count);
  const event_count = starts.size === 1 ? Math.max(...counted) : counted.reduce((sum, count) => sum + count, 0);
  return { quantity, integral, event_count };
}
