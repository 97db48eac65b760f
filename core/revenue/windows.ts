/** The windows of a dashboard: cut at the clock of UTC, the first and the last by the range (docs/rules/revenue.md, "Windows"). */
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import { type WindowSize, windowStarts } from '../time/window.ts';

export function cutWindows({ start, end }: Period, size: WindowSize): Period[] {
  const starts = windowStarts(start, end, size, { timezone: 'UTC' });
  const bounds = [start, ...starts.filter((at) => at > start), end];
  return bounds.slice(1).map((until, index) => ({ start: bounds[index]!, end: until }));
}

/** What is to come recurs as it does now: the running window ends now, and those after it have no movement yet. */
export function filterBegun(now: Milliseconds, windows: readonly Period[]): Period[] {
  return windows.filter(({ start }) => start < now).map(({ start, end }) => ({ start, end: Math.min(end, now) }));
}

/** So many days are shown day by day, and more by the month. */
const DAYS_SHOWN_MAX = 62;
const DAY_MS = 86_400_000;

export function selectWindowSize({ start, end }: Period): WindowSize {
  return end - start > DAYS_SHOWN_MAX * DAY_MS ? 'MONTH' : 'DAY';
}

const MONTH_NAMES = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** As people read it: `Jan 2026`, and of anything that is no month its day. */
export function formatWindowLabel(start: Milliseconds, size: WindowSize): string {
  const at = new Date(start);
  return size === 'MONTH'
    ? `${MONTH_NAMES[at.getUTCMonth()]} ${at.getUTCFullYear()}`
    : at.toISOString().slice(0, size === 'DAY' || size === 'WEEK' ? 10 : 16);
}
