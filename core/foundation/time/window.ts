/**
 * Usage windows: half-open, and aligned to the clock of an IANA timezone, by default UTC (docs/rules/windows.md, "Windows
 * follow the local clock"). Weeks begin on Monday, months on the day of the billing anchor (docs/rules/windows.md,
 * "Months from the billing anchor"). Instants are milliseconds since 1970.
 *
 * A window of an hour or less is an interval of real time: a day with a clock change has 23 or 25 hours. It is cut if the
 * clock jumps by a part of a window. A longer window starts when the clock shows 00:00, 03:00, 06:00 … and is an hour
 * longer or shorter on that day (docs/rules/windows.md, "Days of 23 and 25 hours").
 */
import { invalid } from '../error.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from './durations.ts';
import { type Microseconds, type Milliseconds, US_PER_MINUTE } from './instant.ts';
import { findOffsetInterval, firstInstantAt } from './zone.ts';

export const WINDOW_SIZES = [
  'MINUTE',
  '15MIN',
  '30MIN',
  'HOUR',
  '3HOUR',
  '6HOUR',
  '12HOUR',
  'DAY',
  'WEEK',
  'MONTH',
] as const;
export type WindowSize = (typeof WINDOW_SIZES)[number];

/** Shortest length of a window apart from clock changes; it bounds the number of windows in a range. */
const SHORTEST_US: Readonly<Record<WindowSize, number>> = {
  MINUTE: US_PER_MINUTE,
  '15MIN': 15 * US_PER_MINUTE,
  '30MIN': 30 * US_PER_MINUTE,
  HOUR: 60 * US_PER_MINUTE,
  '3HOUR': 180 * US_PER_MINUTE,
  '6HOUR': 360 * US_PER_MINUTE,
  '12HOUR': 720 * US_PER_MINUTE,
  DAY: 1440 * US_PER_MINUTE,
  WEEK: 7 * 1440 * US_PER_MINUTE,
  MONTH: 28 * 1440 * US_PER_MINUTE,
};

/** Upper bound of the number of windows in a range, apart from clock changes and partial windows at its ends. */
export function windowCount(
  range: { start_us: Microseconds; end_us: Microseconds },
  size: WindowSize | null | undefined,
): number {
  return size ? (range.end_us - range.start_us) / SHORTEST_US[size] : 1;
}

/**
 * Time zone of the windows, and anchor for MONTH: its windows start on the day of the month of `billing_anchor`, at
 * local 00:00.
 */
export type WindowGrid = { readonly timezone: string; readonly billing_anchor?: Milliseconds | null };
export type UsageWindow = { readonly start: Milliseconds; readonly end: Milliseconds };

export function windowAt(instant: Milliseconds, size: WindowSize, grid: WindowGrid): UsageWindow {
  const short = SHORT_SIZES[size];
  return short === undefined ? longWindowAt(instant, size, grid) : shortWindowAt(instant, short, grid.timezone);
}

export function windowStart(instant: Milliseconds, size: WindowSize, grid: WindowGrid): number {
  return windowAt(instant, size, grid).start;
}

/** All windows that share an instant with [rangeStart, rangeEnd); the first may begin before the range and the last end after it. */
export function listWindows(
  rangeStart: Milliseconds,
  rangeEnd: Milliseconds,
  size: WindowSize,
  grid: WindowGrid,
): UsageWindow[] {
  if (!(rangeStart <= rangeEnd)) throw invalid('range_end', 'lies before range_start');
  const short = SHORT_SIZES[size];
  if (short !== undefined) return listShortWindows(rangeStart, rangeEnd, short, grid.timezone);
  const windows: UsageWindow[] = [];
  for (let at = rangeStart; at < rangeEnd; ) {
    const window = windowAt(at, size, grid);
    windows.push(window);
    at = window.end;
  }
  return windows;
}

export function windowStarts(
  rangeStart: Milliseconds,
  rangeEnd: Milliseconds,
  size: WindowSize,
  grid: WindowGrid,
): number[] {
  return listWindows(rangeStart, rangeEnd, size, grid).map((window) => window.start);
}

const SHORT_SIZES: Partial<Record<WindowSize, number>> = {
  MINUTE: MINUTE_MS,
  '15MIN': 15 * MINUTE_MS,
  '30MIN': 30 * MINUTE_MS,
  HOUR: HOUR_MS,
};

function shortWindowAt(instant: Milliseconds, length: number, timezone: string): UsageWindow {
  const { from, to, offset } = findOffsetInterval(timezone, instant);
  const start = floorTo(instant + offset, length) - offset;
  return { start: Math.max(start, from), end: Math.min(start + length, to) };
}

/** Lists short windows. There may be tens of thousands, so the offset is read once per offset interval. */
function listShortWindows(
  rangeStart: Milliseconds,
  rangeEnd: Milliseconds,
  length: number,
  timezone: string,
): UsageWindow[] {
  const windows: UsageWindow[] = [];
  for (let at = rangeStart; at < rangeEnd; ) {
    const { from, to, offset } = findOffsetInterval(timezone, at);
    for (let start = floorTo(at + offset, length) - offset; start < to && at < rangeEnd; start = at) {
      at = Math.min(start + length, to);
      windows.push({ start: Math.max(start, from), end: at });
    }
  }
  return windows;
}

/** Divides local time into windows of a long size: `at` is the boundary at or before a local time, `after` the next boundary. */
type LocalGrid = { at: (localMs: Milliseconds) => number; after: (boundary: number) => number };

function longWindowAt(instant: Milliseconds, size: WindowSize, grid: WindowGrid): UsageWindow {
  const localGrid = buildLocalGrid(size, grid);
  let boundary = localGrid.at(instant + findOffsetInterval(grid.timezone, instant).offset);
  let start = firstInstantAt(grid.timezone, boundary);
  for (;;) {
    boundary = localGrid.after(boundary);
    const end = firstInstantAt(grid.timezone, boundary);
    if (end > instant) return { start, end };
    // The instant lies after this window, because the clock was set back over a boundary or skipped a whole window. The next window is
    // tried.
    start = end;
  }
}

function buildLocalGrid(size: WindowSize, grid: WindowGrid): LocalGrid {
  switch (size) {
    case '3HOUR':
      return evenGrid(3 * HOUR_MS);
    case '6HOUR':
      return evenGrid(6 * HOUR_MS);
    case '12HOUR':
      return evenGrid(12 * HOUR_MS);
    case 'DAY':
      return evenGrid(DAY_MS);
    case 'WEEK':
      return evenGrid(7 * DAY_MS, MONDAY);
    case 'MONTH':
      return monthGrid(anchorDay(grid));
    default:
      throw invalid('window_size', `${JSON.stringify(size)} is not one of ${WINDOW_SIZES.join(', ')}`);
  }
}

/** First Monday after 1970-01-01, which was a Thursday. */
const MONDAY = 4 * DAY_MS;

/** Grid of windows whose length divides a day or is a number of whole days, counted from the local midnight `origin`. */
function evenGrid(length: number, origin = 0): LocalGrid {
  return { at: (localMs) => floorTo(localMs - origin, length) + origin, after: (boundary) => boundary + length };
}

function monthGrid(day: number): LocalGrid {
  const boundary = (month: number) => dayOfMonth(month, day);
  return {
    at: (localMs) => {
      const month = monthNumber(localMs);
      return boundary(month) <= localMs ? boundary(month) : boundary(month - 1);
    },
    after: (start) => boundary(monthNumber(start) + 1),
  };
}

function anchorDay({ billing_anchor, timezone }: WindowGrid): number {
  if (billing_anchor === undefined || billing_anchor === null) return 1;
  return new Date(billing_anchor + findOffsetInterval(timezone, billing_anchor).offset).getUTCDate();
}

/** Months since year 0, so that arithmetic on months works across years. */
function monthNumber(localMs: Milliseconds): number {
  const date = new Date(localMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** Local midnight of `day` in the month, or of the last day of a shorter month. */
function dayOfMonth(month: number, day: number): number {
  const lastDay = new Date(Date.UTC(Math.floor(month / 12), (month % 12) + 1, 0)).getUTCDate();
  return Date.UTC(Math.floor(month / 12), month % 12, Math.min(day, lastDay));
}

function floorTo(value: number, step: number): number {
  return Math.floor(value / step) * step;
}
