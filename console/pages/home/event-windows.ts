/** The windows of the last hour. A window without events is a true zero: the service counts all of the range. */
import { MINUTE_MS } from '../../../core/foundation/time/durations.ts';

const HOUR_MINUTES = 60;

type HourRange = { readonly start_time: string; readonly end_time: string };
type WindowCount = { readonly timestamp: string; readonly event_count: number };

/** The hour that ends with the current minute. */
export function findHourBefore(now_ms: number): HourRange {
  const end_ms = (Math.floor(now_ms / MINUTE_MS) + 1) * MINUTE_MS;
  return {
    start_time: new Date(end_ms - HOUR_MINUTES * MINUTE_MS).toISOString(),
    end_time: new Date(end_ms).toISOString(),
  };
}

/** One count a minute, in order; the service leaves out windows without events. */
export function fillWindows({ start_time }: HourRange, points: readonly WindowCount[]): number[] {
  const counts = Array.from({ length: HOUR_MINUTES }, () => 0);
  const start_ms = new Date(start_time).getTime();
  for (const { timestamp, event_count } of points) {
    const minute = Math.floor((new Date(timestamp).getTime() - start_ms) / MINUTE_MS);
    if (minute >= 0 && minute < HOUR_MINUTES) counts[minute] = event_count;
  }
  return counts;
}
