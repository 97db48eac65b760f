/** Windows, shares and marks of the usage explorer. Usage and cost come from the API; only the line of all other groups is computed here. */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { HOUR_MS } from '../../../core/foundation/time/durations.ts';
import { type ChartMark, type ChartPoint, toPlace } from '../../charts/series.ts';
import { countDays, type DayRange, toDay } from '../../components/range.ts';
import { findLocale } from '../../figures/format.ts';
import type { Language } from '../../texts/texts.ts';
import type { UsageWindowSize } from './usage-window.ts';

/** Hours are drawn in ranges up to this length; a longer one has too many for the width of a page. */
const HOUR_DAYS_MAX = 31;
/** Aggregations whose usage is zero in a window without events. Of the others it is not known. */
const EMPTY_IS_ZERO = new Set(['COUNT', 'SUM', 'COUNT_UNIQUE', 'SUM_WITH_MULTIPLIER']);

/** Aggregations whose groups add up to the whole. Only these have shares and a line of all other groups. */
const ADDITIVE = new Set(['COUNT', 'SUM', 'SUM_WITH_MULTIPLIER']);

export function isAdditive(aggregation: string): boolean {
  return ADDITIVE.has(aggregation);
}

type Windowed = { readonly at: string; readonly value: string };

/** One point for each window up to now; windows without events are zero where the aggregation says so. */
export function fillWindows(
  windows: readonly Windowed[],
  {
    range,
    window,
    aggregation,
    now_ms,
  }: { range: DayRange; window: UsageWindowSize; aggregation: string; now_ms: number },
): ChartPoint[] {
  const isZero = EMPTY_IS_ZERO.has(aggregation);
  const values = new Map(windows.map(({ at, value }) => [new Date(at).getTime(), value]));
  const end_ms = Math.min(new Date(range.to).getTime(), now_ms);
  const points: ChartPoint[] = [];
  for (let at_ms = startOfWindow(range.from, window); at_ms < end_ms; at_ms = nextWindow(at_ms, window)) {
    const value = values.get(at_ms) ?? (isZero ? '0' : undefined);
    if (value !== undefined) points.push({ at: new Date(at_ms).toISOString(), value });
  }
  return points;
}

/** The points of the range before, at the places of the range itself: the first window under the first. */
export function moveWindows(
  points: readonly ChartPoint[],
  from: DayRange,
  to: DayRange,
  window: UsageWindowSize,
): ChartPoint[] {
  const end_ms = new Date(to.to).getTime();
  const places = new Map<number, number>();
  let target = startOfWindow(to.from, window);
  for (let at_ms = startOfWindow(from.from, window); target < end_ms; at_ms = nextWindow(at_ms, window)) {
    places.set(at_ms, target);
    target = nextWindow(target, window);
  }
  return points.flatMap(({ at, value }) => {
    const place = places.get(new Date(at).getTime());
    return place === undefined ? [] : [{ at: new Date(place).toISOString(), value }];
  });
}

/** Subtracts the parts from the whole, window by window. */
export function subtractParts(whole: readonly ChartPoint[], parts: readonly (readonly ChartPoint[])[]): ChartPoint[] {
  const values = parts.map((points) => new Map(points.map(({ at, value }) => [at, value])));
  return whole.map(({ at, value }) => ({
    at,
    value: values.reduce((rest, part) => rest.minus(part.get(at) ?? 0), new Decimal(value)).toFixed(),
  }));
}

/** Adds the parts, window by window. */
export function addParts(parts: readonly (readonly ChartPoint[])[]): ChartPoint[] {
  const sums = new Map<string, Decimal>();
  for (const { at, value } of parts.flat()) sums.set(at, (sums.get(at) ?? new Decimal(0)).plus(value));
  return [...sums].map(([at, sum]) => ({ at, value: sum.toFixed() }));
}

export function isAllZero(points: readonly ChartPoint[]): boolean {
  return points.every(({ value }) => new Decimal(value).isZero());
}

function startOfWindow(day: string, window: UsageWindowSize): number {
  return new Date(window === 'MONTH' ? `${day.slice(0, 7)}-01` : day).getTime();
}

function nextWindow(at_ms: number, window: UsageWindowSize): number {
  if (window !== 'MONTH') return at_ms + (window === 'HOUR' ? HOUR_MS : 24 * HOUR_MS);
  const start = new Date(at_ms);
  return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1);
}

/** Why a window is too fine for a range; null if it is not. */
export function isTooFine(window: UsageWindowSize, range: DayRange): boolean {
  return window === 'HOUR' && countDays(range) > HOUR_DAYS_MAX;
}

/** The window that suits a range. */
export function chooseWindow(range: DayRange): UsageWindowSize {
  const days = countDays(range);
  return days <= 3 ? 'HOUR' : days <= 120 ? 'DAY' : 'MONTH';
}

/** The change of a value against the one before, in percent with one digit; null if there was none. */
export function computeChange(value: string, before: string): string | null {
  const old = new Decimal(before);
  return old.isZero() ? null : new Decimal(value).minus(old).times(100).dividedBy(old.abs()).toFixed(1);
}

/** A percentage with one digit; a change has its sign. */
export function formatPercent(language: Language, percent: string, { isChange = false } = {}): string {
  const format = new Intl.NumberFormat(findLocale(language), {
    minimumFractionDigits: 1,
    maximumFractionDigits: 1,
    signDisplay: isChange ? 'exceptZero' : 'auto',
  });
  return `${format.format(percent as Intl.StringNumericLiteral).replace('-', '−')} %`;
}

/** The part of a whole in percent with one digit; null without a whole. */
export function computeShare(value: string, whole: string): string | null {
  const total = new Decimal(whole);
  return total.isZero() ? null : new Decimal(value).times(100).dividedBy(total).toFixed(1);
}

/** An exact amount in the digits of its currency, for a headline; the thread has all digits. */
export function roundAmount(amount: string, digits: number): string {
  return new Decimal(amount).toFixed(digits);
}

export type ValueWeight = { readonly value: string; readonly usage: string };

/** Distinct values, those with the largest single usage first. The API returns their usage, value by value. */
export function listValues(weights: readonly ValueWeight[], max: number): { values: string[]; left_out: number } {
  const largest = new Map<string, number>();
  for (const { value, usage } of weights)
    if (value !== '') largest.set(value, Math.max(largest.get(value) ?? 0, toPlace(usage)));
  const sorted = [...largest].sort(([left, a], [right, b]) => b - a || left.localeCompare(right));
  return { values: sorted.slice(0, max).map(([value]) => value), left_out: Math.max(0, sorted.length - max) };
}

type PriceSpan = {
  readonly entity_id: string | null;
  readonly start_date: string | null;
  readonly end_date: string | null;
  readonly plan_name: string | null;
};

/** Moments in the range at which a price followed another one of its plan. */
export function listPriceChanges(
  prices: readonly PriceSpan[],
  range: DayRange,
  label: (plan: string) => string,
): ChartMark[] {
  return prices.flatMap(({ entity_id, start_date, plan_name }) => {
    if (start_date === null) return [];
    const at_ms = new Date(start_date).getTime();
    const isFollower = prices.some(
      (other) =>
        other.entity_id === entity_id && other.end_date !== null && new Date(other.end_date).getTime() === at_ms,
    );
    const isInside = at_ms > new Date(range.from).getTime() && at_ms < new Date(range.to).getTime();
    return isFollower && isInside ? [{ at: start_date, label: label(plan_name ?? '') }] : [];
  });
}

type MarkedCorrection = { readonly timestamp: string | null };

/** Lists one mark for each window of the range with corrected events, at the start of the window. */
export function listCorrectionMarks(
  corrections: readonly MarkedCorrection[],
  { range, window, label }: { range: DayRange; window: UsageWindowSize; label: (count: number) => string },
): ChartMark[] {
  const [start_ms, end_ms] = [new Date(range.from).getTime(), new Date(range.to).getTime()];
  const counts = new Map<number, number>();
  for (const { timestamp } of corrections) {
    if (timestamp === null) continue;
    const at_ms = new Date(timestamp).getTime();
    if (at_ms < start_ms || at_ms >= end_ms) continue;
    const window_ms = findWindowStart(at_ms, window);
    counts.set(window_ms, (counts.get(window_ms) ?? 0) + 1);
  }
  return [...counts]
    .sort(([left], [right]) => left - right)
    .map(([at_ms, count]) => ({ at: new Date(at_ms).toISOString(), label: label(count) }));
}

/** Start of the window that contains the instant. */
function findWindowStart(at_ms: number, window: UsageWindowSize): number {
  if (window !== 'HOUR') return startOfWindow(toDay(at_ms), window);
  return at_ms - (at_ms % HOUR_MS);
}
