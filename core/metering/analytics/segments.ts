/**
 * Splits a usage query into whole days, whole base buckets and raw rows for the two unaligned edges. The base buckets of
 * an unaligned edge replace its raw rows if all of their events lie in the range; this is nearly always so for a query
 * until now. A segment is an interval that belongs to one requested window and one bucket_size window of the meter. All
 * instants are microseconds, all ranges half-open (docs/rules/windows.md, "Half-open ranges").
 */

import { ceilToMs, type Microseconds, toMs, toUs, US_PER_DAY, US_PER_SECOND } from '../../foundation/time/instant.ts';
import { listWindows, type WindowGrid, type WindowSize } from '../../foundation/time/window.ts';
import { findOffsetInterval } from '../../foundation/time/zone.ts';
import { canUseDailyRollups, US_BY_ROW_SIZE } from '../bucket-size.ts';
import type { CompiledMeter } from '../compiled-meter.ts';

export type SegmentRange = readonly [start_us: Microseconds, end_us: Microseconds];

/**
 * An interval of the query. `window_us` is the start of the requested window, `own_us` the start of the meter's
 * bucket_size window.
 */
export type UsageSegment = {
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly window_us: Microseconds;
  readonly own_us: Microseconds;
};

export type SegmentPlan = {
  readonly segments: readonly UsageSegment[];
  /** True if each base row is one window of the meter. The window is then that of the row, and `own_us` of the segments is ignored. */
  readonly rows_are_windows: boolean;
  readonly base_ranges: readonly SegmentRange[];
  readonly day_ranges: readonly SegmentRange[];
  readonly raw_ranges: readonly SegmentRange[];
  /**
   * Base buckets at the unaligned edges, which contain all of `raw_ranges`. Empty if no edge is unaligned, or if a bucket belongs to
   * several segments.
   */
  readonly edge_ranges: readonly SegmentRange[];
};

/** Maximum number of separate ranges in a plan. A plan with more of them reads its whole range from raw rows. */
const RANGES_MAX = 200;

type SegmentQuery = {
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly window_size?: WindowSize | undefined;
  /** Start of the requested windows; all time before it is one window. Default: `start_us`. */
  readonly windows_from_us?: Microseconds | undefined;
  readonly grid: WindowGrid;
};

/** Yields once per segment, because there may be tens of thousands and the caller can run other work in between. */
export function* planSegments(meter: CompiledMeter, query: SegmentQuery): Generator<undefined, SegmentPlan, undefined> {
  const rowsAreWindows = meter.bucket_size !== undefined && isWindowedByBaseRows(meter, query);
  const segments = yield* planSegmentList(meter, query, rowsAreWindows);
  const base: OpenRange[] = [];
  const days: OpenRange[] = [];
  const raw: OpenRange[] = [];
  for (const segment of segments) {
    assignSegment(meter, segment, { base, days, raw });
    yield;
  }
  const plan = {
    segments,
    rows_are_windows: rowsAreWindows,
    base_ranges: base,
    day_ranges: days,
    raw_ranges: raw,
    edge_ranges: planEdgeBuckets(segments, raw, { ...query, size: US_BY_ROW_SIZE[meter.base_size] }),
  };
  if (plan.base_ranges.length + plan.day_ranges.length + plan.raw_ranges.length <= RANGES_MAX) return plan;
  return planRawOnly(plan, query);
}

/** Plans to read the whole range from raw rows. */
export function planRawOnly(
  plan: SegmentPlan,
  { start_us, end_us }: { start_us: Microseconds; end_us: Microseconds },
): SegmentPlan {
  return { ...plan, base_ranges: [], day_ranges: [], raw_ranges: [[start_us, end_us]], edge_ranges: [] };
}

/** Plans to read the base bucket of an instant, and the unaligned edges, from raw rows. */
export function planRawBucket(
  plan: SegmentPlan,
  {
    at_us,
    size,
    start_us,
    end_us,
  }: { at_us: Microseconds; size: number; start_us: Microseconds; end_us: Microseconds },
): SegmentPlan {
  const from = floorTo(at_us, size);
  const bucket: SegmentRange = [from, from + size];
  const day = floorTo(at_us, US_PER_DAY);
  const isInDays = isInRanges(plan.day_ranges, at_us);
  const day_ranges = isInDays ? cutRange(plan.day_ranges, [day, day + US_PER_DAY]) : plan.day_ranges;
  const base_ranges = isInDays ? mergeRanges([...plan.base_ranges, [day, day + US_PER_DAY]]) : plan.base_ranges;
  const raw: SegmentRange = [Math.max(bucket[0], start_us), Math.min(bucket[1], end_us)];
  return {
    ...plan,
    day_ranges,
    base_ranges: cutRange(base_ranges, bucket),
    raw_ranges: mergeRanges([...plan.raw_ranges, raw]),
    edge_ranges: [],
  };
}

function cutRange(ranges: readonly SegmentRange[], [from, to]: SegmentRange): SegmentRange[] {
  return ranges.flatMap(([start, end]) =>
    [[start, Math.min(end, from)] as const, [Math.max(start, to), end] as const].filter(
      ([first, last]) => first < last,
    ),
  );
}

/** Replaces the raw rows of the unaligned edges by their base buckets; correct only if these have no events outside the range. */
export function useEdgeBuckets(plan: SegmentPlan): SegmentPlan {
  return { ...plan, base_ranges: mergeRanges([...plan.base_ranges, ...plan.edge_ranges]), raw_ranges: [] };
}

/**
 * The first and the last base bucket that the range covers in part. Returns nothing if several segments share a base bucket, or if raw rows
 * outside of these two buckets are needed: in both cases the raw rows are read.
 */
function planEdgeBuckets(
  segments: readonly UsageSegment[],
  raw: readonly SegmentRange[],
  { start_us, end_us, size }: { start_us: Microseconds; end_us: Microseconds; size: number },
): SegmentRange[] {
  const areShared = segments.some(
    (segment) => segment.start_us !== start_us && floorTo(segment.start_us, size) !== segment.start_us,
  );
  if (areShared) return [];
  const edges = [...new Set([floorTo(start_us, size), floorTo(end_us, size)])]
    .map((from): SegmentRange => [from, from + size])
    .filter(([from, to]) => raw.some((range) => range[0] < to && range[1] > from));
  const found = mergeRanges(edges);
  return raw.every((range) => found.some(([from, to]) => range[0] >= from && range[1] <= to)) ? found : [];
}

/** Limits daily rollups to days before `days_before` (days since 1970), because later days have none. */
export function limitDailyRollups(plan: SegmentPlan, days_before: number): SegmentPlan {
  const end = days_before * US_PER_DAY;
  const days = plan.day_ranges
    .map(([from, to]): SegmentRange => [from, Math.min(to, end)])
    .filter(([from, to]) => from < to);
  const later = plan.day_ranges
    .map(([from, to]): SegmentRange => [Math.max(from, end), to])
    .filter(([from, to]) => from < to);
  return { ...plan, day_ranges: days, base_ranges: mergeRanges([...plan.base_ranges, ...later]) };
}

/**
 * Whether base rows are the windows of the meter. Base rows are aligned to UTC, so every UTC offset of the zone must be a multiple of their
 * size.
 */
function isWindowedByBaseRows(
  meter: CompiledMeter,
  query: { start_us: Microseconds; end_us: Microseconds; grid: WindowGrid },
): boolean {
  if (meter.bucket_size !== meter.base_size) return false;
  const size = toMs(US_BY_ROW_SIZE[meter.base_size]);
  for (let at = toMs(query.start_us); at < ceilToMs(query.end_us); ) {
    const interval = findOffsetInterval(query.grid.timezone, at);
    if (interval.offset % size !== 0) return false;
    at = interval.to;
  }
  return true;
}

function* planSegmentList(
  meter: CompiledMeter,
  query: SegmentQuery,
  rowsAreWindows: boolean,
): Generator<undefined, UsageSegment[], undefined> {
  const { start_us, end_us, window_size, grid } = query;
  const queryStarts = window_size === undefined ? [start_us] : computeQueryStarts(query, window_size);
  const ownStarts =
    meter.bucket_size === undefined || rowsAreWindows
      ? [start_us]
      : computeWindowStarts(query, meter.bucket_size, grid);
  const edges = mergeEdges(queryStarts, ownStarts, start_us);
  const segments: UsageSegment[] = [];
  let queryAt = 0;
  let ownAt = 0;
  for (const [index, edge] of edges.entries()) {
    while (queryAt + 1 < queryStarts.length && queryStarts[queryAt + 1]! <= edge) queryAt++;
    while (ownAt + 1 < ownStarts.length && ownStarts[ownAt + 1]! <= edge) ownAt++;
    const end = edges[index + 1] ?? end_us;
    if (end > edge)
      segments.push({ start_us: edge, end_us: end, window_us: queryStarts[queryAt]!, own_us: ownStarts[ownAt]! });
    yield;
  }
  return segments;
}

/**
 * Computes the starts of the windows. If less than a second of the range precedes `windows_from_us`, it belongs to the first window,
 * because segments are identified by their second.
 */
function computeQueryStarts(
  { start_us, end_us, windows_from_us = start_us, grid }: SegmentQuery,
  size: WindowSize,
): number[] {
  if (windows_from_us - start_us < US_PER_SECOND) return computeWindowStarts({ start_us, end_us }, size, grid);
  const [first = windows_from_us, ...later] = computeWindowStarts({ start_us: windows_from_us, end_us }, size, grid);
  return [start_us, Math.max(first, windows_from_us), ...later];
}

/** Merges two lists in time order into one without duplicates. */
function mergeEdges(left: readonly number[], right: readonly number[], start_us: Microseconds): number[] {
  const edges: number[] = [];
  for (let i = 0, j = 0; i < left.length || j < right.length; ) {
    const isLeft = j >= right.length || (i < left.length && left[i]! <= right[j]!);
    const at = Math.max(isLeft ? left[i++]! : right[j++]!, start_us);
    if (edges.at(-1) !== at) edges.push(at);
  }
  return edges;
}

function computeWindowStarts(
  query: { start_us: Microseconds; end_us: Microseconds },
  size: WindowSize,
  grid: WindowGrid,
): number[] {
  // Windows are cut at milliseconds: the range is widened to whole milliseconds, and the caller clips it again.
  const windows = listWindows(toMs(query.start_us), ceilToMs(query.end_us), size, grid);
  return windows.map((window) => toUs(window.start));
}

type OpenRange = [start_us: Microseconds, end_us: Microseconds];

/** Segments come in time order, so each new range begins at or after the end of the last range in its list. */
function assignSegment(
  meter: CompiledMeter,
  { start_us, end_us }: UsageSegment,
  into: { base: OpenRange[]; days: OpenRange[]; raw: OpenRange[] },
): void {
  const size = US_BY_ROW_SIZE[meter.base_size];
  const first = ceilTo(start_us, size);
  const last = floorTo(end_us, size);
  if (first >= last) {
    extendRanges(into.raw, start_us, end_us);
    return;
  }
  if (start_us < first) extendRanges(into.raw, start_us, first);
  if (last < end_us) extendRanges(into.raw, last, end_us);
  const firstDay = ceilTo(first, US_PER_DAY);
  const lastDay = floorTo(last, US_PER_DAY);
  if (!canUseDailyRollups(meter.bucket_size) || firstDay >= lastDay) {
    extendRanges(into.base, first, last);
    return;
  }
  if (first < firstDay) extendRanges(into.base, first, firstDay);
  extendRanges(into.days, firstDay, lastDay);
  if (lastDay < last) extendRanges(into.base, lastDay, last);
}

function extendRanges(ranges: OpenRange[], start_us: Microseconds, end_us: Microseconds): void {
  const previous = ranges.at(-1);
  if (previous && previous[1] === start_us) previous[1] = end_us;
  else ranges.push([start_us, end_us]);
}

/** Merges ranges, which may overlap, to the fewest that cover the same time. */
export function mergeRanges(ranges: readonly SegmentRange[]): SegmentRange[] {
  const result: OpenRange[] = [];
  for (const [start, end] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const previous = result.at(-1);
    if (previous && start <= previous[1]) previous[1] = Math.max(previous[1], end);
    else result.push([start, end]);
  }
  return result;
}

export function isInRanges(ranges: readonly SegmentRange[], at: Microseconds): boolean {
  return ranges.some(([start, end]) => at >= start && at < end);
}

function floorTo(at: number, size: number): number {
  const rest = at % size;
  return rest < 0 ? at - rest - size : at - rest;
}

function ceilTo(at: number, size: number): number {
  const floor = floorTo(at, size);
  return floor === at ? at : floor + size;
}
