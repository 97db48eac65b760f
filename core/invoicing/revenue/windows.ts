/** Windows of a dashboard: aligned to UTC, with the first and the last clipped to the range (docs/rules/revenue.md, "Windows"). */

import { DAY_MS } from '../../foundation/time/durations.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import { type WindowSize, windowStarts } from '../../foundation/time/window.ts';

export function cutWindows({ start, end }: Period, size: WindowSize): Period[] {
  const starts = windowStarts(start, end, size, { timezone: 'UTC' });
  const bounds = [start, ...starts.filter((at) => at > start), end];
  return bounds.slice(1).map((until, index) => ({ start: bounds[index]!, end: until }));
}

/** Drops future windows, which have no movement of recurring revenue yet, and ends the current window now. */
export function filterBegun(now: Milliseconds, windows: readonly Period[]): Period[] {
  return windows.filter(({ start }) => start < now).map(({ start, end }) => ({ start, end: Math.min(end, now) }));
}

/** Longest range in days that is shown by day; a longer one is shown by month. */
const DAYS_SHOWN_MAX = 62;

export function selectWindowSize({ start, end }: Period): WindowSize {
  return end - start > DAYS_SHOWN_MAX * DAY_MS ? 'MONTH' : 'DAY';
}

const MONTH_NAMES = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Label for people: `Jan 2026` for a month, else the day, with the time for windows shorter than a day. */
export function formatWindowLabel(start: Milliseconds, size: WindowSize): string {
  const at = new Date(start);
  return size === 'MONTH'
    ? `${MONTH_NAMES[at.getUTCMonth()]} ${at.getUTCFullYear()}`
    : at.toISOString().slice(0, size === 'DAY' || size === 'WEEK' ? 10 : 16);
}
