/**
 * A point is as large as was asked for, or as the meter's own window where that is larger: a bucketed meter has no value
 * for a part of its bucket (docs/rules/windows.md, "Never finer than the meter").
 */
import { WINDOW_SIZES, type WindowSize } from '../time/window.ts';

export function pointSize(asked: WindowSize | null, bucket_size: WindowSize | null | undefined): WindowSize | null {
  if (asked === null || !bucket_size) return asked;
  return WINDOW_SIZES.indexOf(bucket_size) > WINDOW_SIZES.indexOf(asked) ? bucket_size : asked;
}
