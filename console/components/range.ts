/** Half-open ranges of days in UTC. Both ends are dates; the end is the first day that is not in the range. */
import { DAY_MS } from '../../core/foundation/time/durations.ts';

export type DayRange = { readonly from: string; readonly to: string };

export const RANGE_PRESETS = ['today', 'week', 'month', 'last_month', 'quarter'] as const;
export type RangePreset = (typeof RANGE_PRESETS)[number];

/** The instant at which a day begins in UTC. */
export function toMidnight(day: string): string {
  return `${day}T00:00:00Z`;
}

export function isDay(text: string | undefined): text is string {
  if (text === undefined || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const instant = new Date(toMidnight(text));
  return !Number.isNaN(instant.getTime()) && instant.toISOString().startsWith(text);
}

export function addDays(day: string, count: number): string {
  return toDay(new Date(toMidnight(day)).getTime() + count * DAY_MS);
}

export function countDays({ from, to }: DayRange): number {
  return Math.round((new Date(to).getTime() - new Date(from).getTime()) / DAY_MS);
}

export function buildPreset(preset: RangePreset, now_ms: number): DayRange {
  const today = toDay(now_ms);
  const to = addDays(today, 1);
  if (preset === 'today') return { from: today, to };
  if (preset === 'week') return { from: addDays(to, -7), to };
  if (preset === 'quarter') return { from: addDays(to, -90), to };
  const month = `${today.slice(0, 7)}-01`;
  return preset === 'month' ? { from: month, to: addMonths(month, 1) } : { from: addMonths(month, -1), to: month };
}

/** The range before: whole months before whole months, else as many days. */
export function buildRangeBefore(range: DayRange): DayRange {
  const isMonths = range.from.endsWith('-01') && range.to.endsWith('-01');
  if (!isMonths) return { from: addDays(range.from, -countDays(range)), to: range.from };
  return { from: addMonths(range.from, -countMonths(range)), to: range.from };
}

/** One calendar month. */
export function isMonth(range: DayRange): boolean {
  return range.from.endsWith('-01') && range.to === addMonths(range.from, 1);
}

export function toInstants({ from, to }: DayRange): { start_time: string; end_time: string } {
  return { start_time: toMidnight(from), end_time: toMidnight(to) };
}

/** The days that contain a half-open range of instants. */
export function coverInstants(start_time: string, end_time: string): DayRange {
  const from = toDay(Date.parse(start_time));
  // The millisecond before the end is the last one of the range.
  return { from, to: addDays(toDay(Date.parse(end_time) - 1), 1) };
}

export function toDay(at_ms: number): string {
  return new Date(at_ms).toISOString().slice(0, 10);
}

function addMonths(day: string, count: number): string {
  const start = new Date(toMidnight(day));
  return toDay(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + count, 1));
}

function countMonths({ from, to }: DayRange): number {
  const [start, end] = [new Date(from), new Date(to)];
  return (end.getUTCFullYear() - start.getUTCFullYear()) * 12 + end.getUTCMonth() - start.getUTCMonth();
}
