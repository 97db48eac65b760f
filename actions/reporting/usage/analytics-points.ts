/**
 * Points of a line in usage analytics (docs/rules/usage.md, "Analytics"). A point has the usage of its window and the cost that the window
 * adds to the running cost. So the points add up to the cost of the range.
 */

import { type Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import { ceilToMs, type Microseconds, toMs, toUs } from '../../../core/foundation/time/instant.ts';
import { listWindows, type WindowGrid, type WindowSize, windowAt } from '../../../core/foundation/time/window.ts';
import { AGGREGATIONS } from '../../../core/metering/aggregations/index.ts';
import type { WindowAnswer } from '../../../core/metering/usage.ts';
import type { CommitmentInfo } from '../../../core/rating/commitments/info.ts';
import type { TimeSlicer } from '../../../storage/concurrency/time-slicer.ts';
import type { MeterModel } from '../../../storage/models/metering/meter.ts';
import type { UsageOfKey } from '../../../storage/usage/usage.ts';
import type { PricedRange, TimesOfDay } from './analytics-costs.ts';
import type { AnalyticsItem } from './analytics-items.ts';

export type AnalyticsPoint = {
  window_us: Microseconds;
  usage: Decimal;
  cost: Decimal;
  event_count: number;
  /** Set for a windowed commitment only. */
  commitment_info: CommitmentInfo | null;
  times_of_day: TimesOfDay | null;
};

export type CountedUsage = UsageOfKey & {
  /** Windows with the running value; the first may include all usage before the range. */
  readonly running: readonly WindowAnswer[];
};

type AnalyticsRange = { readonly start_us: Microseconds; readonly end_us: Microseconds };
type PointsInput = PricedRange & {
  readonly of: Pick<CountedUsage, 'windows' | 'running'>;
  readonly range: AnalyticsRange;
  readonly window_size: WindowSize;
  readonly grid: WindowGrid;
  readonly signal: AbortSignal | undefined;
};

/** Computes one point per window that has events or adds a cost. */
export async function computePoints(pointing: PointsInput, slicer: TimeSlicer): Promise<AnalyticsPoint[]> {
  const { of, costs, total, range, signal } = pointing;
  // The first window may begin before the range, so only the end identifies a window.
  const own = new Map(of.windows.map((window) => [window.end_us, window]));
  const points: AnalyticsPoint[] = [];
  let left = total.cost;
  let waiting = ZERO;
  for (const window of of.running) {
    const { cost: added, ...details } = costs.added(window);
    const { window_us, value, event_count } = own.get(window.end_us) ?? NOTHING;
    const cost = waiting.plus(added);
    const isShown = own.has(window.end_us) ? event_count > 0 || !cost.isZero() : false;
    waiting = isShown ? ZERO : cost;
    if (isShown) {
      points.push({ window_us, usage: value, event_count, cost, ...details });
      left = left.minus(cost);
    }
    if (slicer.isOver()) await slicer.next(signal);
  }
  return left.isZero() || range.end_us <= range.start_us ? points : withLast(points, left, pointing);
}

const NOTHING = { window_us: 0, value: ZERO, event_count: 0 };

/** Adds costs that fall due with the end of the range: a true-up, and costs after the last window with events. */
function withLast(points: readonly AnalyticsPoint[], cost: Decimal, pointing: PointsInput): AnalyticsPoint[] {
  const { range, window_size, grid } = pointing;
  const window_us = toUs(windowAt(ceilToMs(range.end_us) - 1, window_size, grid).start);
  const last = points.at(-1);
  if (last?.window_us === window_us) return points.with(-1, { ...last, cost: last.cost.plus(cost) });
  const empty = { usage: ZERO, event_count: 0, commitment_info: null, times_of_day: null };
  return [...points, { window_us, cost, ...empty }];
}

/** Whether windows without events may add a cost: a level persists in them, or they have a commitment. */
export function canCostWithoutEvents({ aggregation }: MeterModel, item: AnalyticsItem | null): boolean {
  if (AGGREGATIONS[aggregation.type].chain_rule === 'integral' && !aggregation.bucket_size) return true;
  const commitment = item?.commitment;
  if (!commitment?.windows) return false;
  return commitment.true_up || commitment.time_buckets.some((bucket) => bucket.true_up_enabled);
}

type UnusedWindows = AnalyticsRange & { readonly meter: MeterModel; readonly item: AnalyticsItem | null };

/** Lists the windows of a line without usage, if they may add a cost. */
export function listEmptyWindows(unused: UnusedWindows, size: WindowSize, grid: WindowGrid): WindowAnswer[] {
  const { start_us, end_us, meter, item } = unused;
  if (!meter.aggregation.bucket_size || !canCostWithoutEvents(meter, item)) return [];
  return listWindows(toMs(start_us), ceilToMs(end_us), size, grid).map(({ start, end }) => ({
    start_us: Math.max(start_us, toUs(start)),
    end_us: Math.min(end_us, toUs(end)),
    window_us: toUs(start),
    value: ZERO,
    event_count: 0,
    buckets: [],
    bucket_starts_us: [],
  }));
}

type NamedRow = {
  readonly feature: { readonly name: string } | null;
  readonly meter: { readonly name: string };
  readonly external_customer_id: string;
};

/** Compares rows by name of the feature, then by customer; equal rows stay in order of addition. */
export function compareByFeature(a: NamedRow, b: NamedRow): number {
  return compareText(toName(a), toName(b)) || compareText(a.external_customer_id, b.external_customer_id);
}

const toName = ({ feature, meter }: NamedRow) => feature?.name ?? meter.name;
const compareText = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1);
