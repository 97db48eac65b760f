/**
 * How a question about usage is cut: "answered from whole days, whole base buckets, and the raw rows of the two ragged
 * ends". A segment is a stretch of time that belongs to one asked window and one bucket_size window of the meter; all
 * instants are microseconds, all ranges half-open (decisions §14).
 */
import { dayRowsAnswer, US_BY_ROW_SIZE } from '../metering/bucket-size.ts';
import type { CompiledMeter } from '../metering/compiled-meter.ts';
import { US_PER_DAY } from '../metering/timestamp.ts';
import { type WindowGrid, type WindowSize, windowsOf } from '../time/window.ts';
import { stretchAt } from '../time/zone.ts';

export type Range = readonly [start_us: number, end_us: number];

/** `asked` is the start of the window that was asked for, `own` that of the meter's own bucket_size window. */
export type Segment = {
  readonly start_us: number;
  readonly end_us: number;
  readonly asked_us: number;
  readonly own_us: number;
};

export type SegmentPlan = {
  readonly segments: readonly Segment[];
  /** The meter's own windows are its base rows: each row is a window, and segments carry no own window. */
  readonly rows_are_windows: boolean;
  readonly base_ranges: readonly Range[];
  readonly day_ranges: readonly Range[];
  readonly raw_ranges: readonly Range[];
};

/** More separate ranges than this are read from the raw rows as one. */
const RANGES_MAX = 200;

export function planSegments(
  meter: CompiledMeter,
  asked: { start_us: number; end_us: number; window_size?: WindowSize | undefined; grid: WindowGrid },
): SegmentPlan {
  const rowsAreWindows = meter.bucket_size !== undefined && baseRowsAreWindows(meter, asked);
  const segments = segmentsOf(meter, asked, rowsAreWindows);
  const base: Range[] = [];
  const days: Range[] = [];
  const raw: Range[] = [];
  for (const segment of segments) divide(meter, segment, { base, days, raw });
  const plan = {
    segments,
    rows_are_windows: rowsAreWindows,
    base_ranges: joined(base),
    day_ranges: joined(days),
    raw_ranges: joined(raw),
  };
  if (plan.base_ranges.length + plan.day_ranges.length + plan.raw_ranges.length <= RANGES_MAX) return plan;
  return { ...plan, base_ranges: [], day_ranges: [], raw_ranges: [[asked.start_us, asked.end_us]] };
}

/** The same with day rows only of the days before this one (since 1970): there are none of later days. */
export function withDaysBefore(plan: SegmentPlan, days_before: number): SegmentPlan {
  const end = days_before * US_PER_DAY;
  const days = plan.day_ranges.map(([from, to]): Range => [from, Math.min(to, end)]).filter(([from, to]) => from < to);
  const later = plan.day_ranges.map(([from, to]): Range => [Math.max(from, end), to]).filter(([from, to]) => from < to);
  return { ...plan, day_ranges: days, base_ranges: joined([...plan.base_ranges, ...later]) };
}

/** Base rows are aligned to UTC: they are the meter's windows where the zone's clock agrees with it. */
function baseRowsAreWindows(
  meter: CompiledMeter,
  asked: { start_us: number; end_us: number; grid: WindowGrid },
): boolean {
  if (meter.bucket_size !== meter.base_size) return false;
  const size = US_BY_ROW_SIZE[meter.base_size] / 1000;
  for (let at = asked.start_us / 1000; at < asked.end_us / 1000; ) {
    const stretch = stretchAt(asked.grid.timezone, at);
    if (stretch.offset % size !== 0) return false;
    at = stretch.to;
  }
  return true;
}

function segmentsOf(
  meter: CompiledMeter,
  asked: { start_us: number; end_us: number; window_size?: WindowSize | undefined; grid: WindowGrid },
  rowsAreWindows: boolean,
): Segment[] {
  const { start_us, end_us, window_size, grid } = asked;
  const askedStarts = window_size === undefined ? [start_us] : startsOf(asked, window_size, grid);
  const ownStarts =
    meter.bucket_size === undefined || rowsAreWindows ? [start_us] : startsOf(asked, meter.bucket_size, grid);
  const edges = [...new Set([...askedStarts, ...ownStarts].map((at) => Math.max(at, start_us)))].sort((a, b) => a - b);
  const segments: Segment[] = [];
  let askedAt = 0;
  let ownAt = 0;
  for (const [index, edge] of edges.entries()) {
    while (askedAt + 1 < askedStarts.length && askedStarts[askedAt + 1]! <= edge) askedAt++;
    while (ownAt + 1 < ownStarts.length && ownStarts[ownAt + 1]! <= edge) ownAt++;
    const end = edges[index + 1] ?? end_us;
    if (end > edge)
      segments.push({ start_us: edge, end_us: end, asked_us: askedStarts[askedAt]!, own_us: ownStarts[ownAt]! });
  }
  return segments;
}

function startsOf(asked: { start_us: number; end_us: number }, size: WindowSize, grid: WindowGrid): number[] {
  // Windows are cut at milliseconds: the range is widened to whole ones and clipped again by the caller.
  const windows = windowsOf(Math.floor(asked.start_us / 1000), Math.ceil(asked.end_us / 1000), size, grid);
  return windows.map((window) => window.start * 1000);
}

function divide(
  meter: CompiledMeter,
  { start_us, end_us }: Segment,
  into: { base: Range[]; days: Range[]; raw: Range[] },
): void {
  const size = US_BY_ROW_SIZE[meter.base_size];
  const first = ceilTo(start_us, size);
  const last = floorTo(end_us, size);
  if (first >= last) {
    into.raw.push([start_us, end_us]);
    return;
  }
  if (start_us < first) into.raw.push([start_us, first]);
  if (last < end_us) into.raw.push([last, end_us]);
  const firstDay = ceilTo(first, US_PER_DAY);
  const lastDay = floorTo(last, US_PER_DAY);
  if (!dayRowsAnswer(meter.bucket_size) || firstDay >= lastDay) {
    into.base.push([first, last]);
    return;
  }
  if (first < firstDay) into.base.push([first, firstDay]);
  into.days.push([firstDay, lastDay]);
  if (lastDay < last) into.base.push([lastDay, last]);
}

function joined(ranges: Range[]): Range[] {
  const result: [number, number][] = [];
  for (const [start, end] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const previous = result.at(-1);
    if (previous && previous[1] === start) previous[1] = end;
    else result.push([start, end]);
  }
  return result;
}

function floorTo(at: number, size: number): number {
  const rest = at % size;
  return rest < 0 ? at - rest - size : at - rest;
}

function ceilTo(at: number, size: number): number {
  const floor = floorTo(at, size);
  return floor === at ? at : floor + size;
}
