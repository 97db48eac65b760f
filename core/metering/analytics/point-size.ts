/**
 * A point has the requested size, or the size of the meter's own window if that is larger: a bucketed meter has no value
 * for a part of its bucket (docs/rules/windows.md, "Never finer than the meter").
 */
import { WINDOW_SIZES, type WindowSize } from '../../foundation/time/window.ts';

export function derivePointSize(
  query: WindowSize | null,
  bucket_size: WindowSize | null | undefined,
): WindowSize | null {
  if (query === null || !bucket_size) return query;
  return WINDOW_SIZES.indexOf(bucket_size) > WINDOW_SIZES.indexOf(query) ? bucket_size : query;
}
