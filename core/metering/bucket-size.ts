/**
 * The sizes of pre-aggregated rows: the base row (an hour, or the meter's own bucket_size if that is finer) and the day.
 * Rows are aligned to UTC; windows in a subscription's timezone (docs/rules/windows.md, "Windows follow the local clock")
 * are composed of rows.
 */
import { type Microseconds, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../foundation/time/instant.ts';
import type { BucketSize } from './meter-definition.ts';

export const US_BY_ROW_SIZE = {
  MINUTE: US_PER_MINUTE,
  '15MIN': 15 * US_PER_MINUTE,
  '30MIN': 30 * US_PER_MINUTE,
  HOUR: US_PER_HOUR,
  DAY: US_PER_DAY,
} as const;

export type RowSize = keyof typeof US_BY_ROW_SIZE;
export type BaseSize = Exclude<RowSize, 'DAY'>;

export function toBaseSize(bucketSize: BucketSize | undefined): BaseSize {
  return bucketSize === 'MINUTE' || bucketSize === '15MIN' || bucketSize === '30MIN' ? bucketSize : 'HOUR';
}

/**
 * Whether daily rollups of a meter can answer for whole days. They cannot if the meter aggregates windows shorter than a
 * day: the sum of hourly maxima cannot be derived from the maximum of the day.
 */
export function canUseDailyRollups(bucketSize: BucketSize | undefined): boolean {
  return bucketSize === undefined || bucketSize === 'DAY' || bucketSize === 'WEEK' || bucketSize === 'MONTH';
}

/** The start of the row that contains an instant, also before 1970. Remainders of safe integers are exact, quotients are not. */
export function rowStart(timestamp_us: Microseconds, size: RowSize): number {
  const length = US_BY_ROW_SIZE[size];
  const rest = timestamp_us % length;
  return rest < 0 ? timestamp_us - rest - length : timestamp_us - rest;
}
