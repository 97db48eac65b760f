/**
 * "A point window reported to callers for a bucketed meter is max(requested window, meter bucket size)": a bucketed meter
 * has no value for a part of its bucket (ingestion-and-metering §1.9).
 */
import { WINDOW_SIZES, type WindowSize } from '../time/window.ts';

export function pointSize(asked: WindowSize | null, bucket_size: WindowSize | null | undefined): WindowSize | null {
  if (asked === null || !bucket_size) return asked;
  return WINDOW_SIZES.indexOf(bucket_size) > WINDOW_SIZES.indexOf(asked) ? bucket_size : asked;
}
