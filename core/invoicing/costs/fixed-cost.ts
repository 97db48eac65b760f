/**
 * Cost of a FIXED price of a cost sheet in a range of time: its charge per billing period, spread evenly over the period and not rounded
 * (docs/rules/costs.md, "What costs whether or not it is used"). Consecutive ranges sum to the whole.
 */

import { defaultQuantity } from '../../catalog/price/quantity.ts';
import type { BillingPeriod, Price } from '../../catalog/price/record.ts';
import { chargeParts } from '../../catalog/pricing/charge.ts';
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { DAY_MS } from '../../foundation/time/durations.ts';
import {
  ceilToMs,
  type Microseconds,
  type Milliseconds,
  toInstant,
  toMs,
  toUs,
} from '../../foundation/time/instant.ts';
import { nextPeriodEnd, type Period, periodsFrom } from '../../foundation/time/period.ts';
import { listWindows, type WindowSize } from '../../foundation/time/window.ts';
import { type ActivePrice, computeActivePrices, listPriceLineage } from './active-prices.ts';
import { type Cost, NO_COST } from './cost.ts';

export type FixedPrice = Pick<
  Price,
  | 'id'
  | 'parent_price_id'
  | 'start_date'
  | 'end_date'
  | 'created_at'
  | 'billing_model'
  | 'tier_mode'
  | 'amount'
  | 'tiers'
  | 'transform_quantity'
  | 'currency'
  | 'billing_period'
  | 'billing_period_count'
  | 'min_quantity'
>;
type CostRange = { readonly start_us: Microseconds; readonly end_us: Microseconds };

/**
 * Active interval of a FIXED price within a range, with all of its periods that overlap it. A ONETIME price has one period of length 0, at
 * the instant of its charge.
 */
export type FixedLine<P extends FixedPrice> = ActivePrice<P> & { readonly periods: readonly Period[] };

export function planFixedLines<P extends FixedPrice>(prices: readonly P[], range: CostRange): FixedLine<P>[] {
  return computeActivePrices(prices, range).flatMap((life) => {
    // A FIXED price does not apply before its start, unlike a usage price: the earlier cost would have no bound.
    const start_us = Math.max(life.start_us, toUs(toPriceStart(life.price)));
    if (start_us >= life.end_us) return [];
    const anchor = Math.min(...listPriceLineage(life.price, prices).map(toPriceStart));
    const within = { start: toMs(start_us), end: ceilToMs(life.end_us) };
    return [{ ...life, start_us, periods: listPeriodsWithin(life.price, anchor, within) }];
  });
}

/** Throws if the first period would end after the year 9999. */
export function checkFixedPeriods(
  price: Pick<FixedPrice, 'billing_period' | 'billing_period_count'>,
  at: string,
): void {
  const { billing_period, billing_period_count } = price;
  if (billing_period === 'ONETIME') return;
  const start = toInstant(at);
  const rule = { billing_anchor: start, billing_period, billing_period_count, timezone: 'UTC' };
  nextPeriodEnd({ ...rule, period_start: start });
}

function toPriceStart({ start_date, created_at }: FixedPrice): Milliseconds {
  return toInstant(start_date ?? created_at);
}

function listPeriodsWithin(price: FixedPrice, anchor: Milliseconds, within: Period): Period[] {
  const { billing_period, billing_period_count } = price;
  // The successor of a ONETIME price charges nothing, because the first price was charged already.
  if (billing_period === 'ONETIME') return within.start <= anchor ? [{ start: anchor, end: anchor }] : [];
  const rule = { billing_anchor: anchor, billing_period, billing_period_count, timezone: 'UTC' };
  const periods: Period[] = [];
  for (const period of periodsFrom(findFirstPeriodStart(rule, within.start), rule)) {
    if (period.end > within.start) periods.push(period);
    if (period.end >= within.end) break;
  }
  return periods;
}

const DAYS: { readonly [Each in BillingPeriod]?: number } = { DAILY: 1, WEEKLY: 7 };

/**
 * Start of a period at or before the instant; the anchor if the instant is earlier. Days have one length in UTC, so the periods of many
 * years are skipped by division.
 */
function findFirstPeriodStart(
  { billing_anchor, billing_period, billing_period_count }: FixedPeriodRule,
  instant: Milliseconds,
): Milliseconds {
  const length = (DAYS[billing_period] ?? 0) * billing_period_count * DAY_MS;
  if (length === 0 || instant < billing_anchor) return billing_anchor;
  return billing_anchor + Math.floor((instant - billing_anchor) / length) * length;
}

type FixedPeriodRule = Pick<FixedPrice, 'billing_period' | 'billing_period_count'> & {
  readonly billing_anchor: Milliseconds;
};

/** Number of decimal places, equal to that of measured usage. */
const DIGITS = 24;

/** Computes the fixed cost in a range. Its quantity is the number of periods, including fractions, times the units of the price. */
export function computeFixedCost<P extends FixedPrice>(
  { price, periods, ...life }: FixedLine<P>,
  range: CostRange,
): Cost {
  const from = Math.max(life.start_us, range.start_us);
  const to = Math.min(life.end_us, range.end_us);
  if (from >= to) return NO_COST;
  const units = new Decimal(defaultQuantity(price));
  const charge = sumDecimals(chargeParts(price, units).map(({ amount }) => amount));
  return {
    cost: sumDecimals(periods.map((period) => prorateEvenly(charge, period, { from, to }))),
    quantity: sumDecimals(periods.map((period) => prorateEvenly(units, period, { from, to }))),
    event_count: 0,
  };
}

type CostInterval = { readonly from: Microseconds; readonly to: Microseconds };

function prorateEvenly(whole: Decimal, period: Period, { from, to }: CostInterval): Decimal {
  const [start, end] = [toUs(period.start), toUs(period.end)];
  if (start === end) return from <= start && start < to ? whole : ZERO;
  // Rounds the value from the start of the period to an instant: differences of such values add up exactly, rounded differences do not.
  const until = (at: Microseconds) =>
    at === end
      ? whole
      : whole
          .times(at - start)
          .dividedBy(end - start)
          .toDecimalPlaces(DIGITS);
  const [begin, stop] = [Math.max(from, start), Math.min(to, end)];
  return begin < stop ? until(stop).minus(until(begin)) : ZERO;
}

/** Computes the costs by UTC window, without windows in which the price does not apply. They sum to the cost of the range. */
export function computeFixedCostsByWindow<P extends FixedPrice>(
  size: WindowSize,
  line: FixedLine<P>,
): (Cost & { readonly window_us: Microseconds })[] {
  const windows = listWindows(toMs(line.start_us), ceilToMs(line.end_us), size, { timezone: 'UTC' });
  return windows
    .map(({ start, end }) => ({
      window_us: toUs(start),
      ...computeFixedCost(line, { start_us: toUs(start), end_us: toUs(end) }),
    }))
    .filter(({ quantity }) => !quantity.isZero());
}
