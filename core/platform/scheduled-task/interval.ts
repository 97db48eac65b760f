/** Interval of each file of a scheduled task; it starts at whole multiples since 1970, in UTC. */

import { MINUTE_MS } from '../../foundation/time/durations.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';

/** Intervals in the API; `custom` is refused. */
export const INTERVALS = ['15MIN', '30MIN', 'hourly', 'daily', 'custom'] as const;
type ExportInterval = (typeof INTERVALS)[number];

const LENGTH_MS: Readonly<Record<ExportInterval, Milliseconds>> = {
  '15MIN': 15 * MINUTE_MS,
  '30MIN': 30 * MINUTE_MS,
  hourly: 60 * MINUTE_MS,
  daily: 1_440 * MINUTE_MS,
  custom: 10 * MINUTE_MS,
};

export function findInterval(interval: ExportInterval, at_ms: Milliseconds): Period {
  const length = LENGTH_MS[interval];
  const start = Math.floor(at_ms / length) * length;
  return { start, end: start + length };
}

export function computeNextInterval(interval: ExportInterval, { end }: Period): Period {
  return { start: end, end: end + LENGTH_MS[interval] };
}

export function findLastWholeInterval(interval: ExportInterval, now_ms: Milliseconds): Period {
  const { start } = findInterval(interval, now_ms);
  return { start: start - LENGTH_MS[interval], end: start };
}
