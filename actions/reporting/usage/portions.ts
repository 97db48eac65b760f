/**
 * Splits customers into portions, so that the result of each query stays small. With windows a customer takes as many
 * result cells as the range has windows.
 */
import { type WindowSize, windowCount } from '../../../core/foundation/time/window.ts';
import { QUERY_CELLS_MAX } from '../../../storage/concurrency/query-bounds.ts';

const CELLS_AT_ONCE = QUERY_CELLS_MAX / 4;

export function* splitPortions(
  customers: readonly string[],
  window_size: WindowSize | null | undefined,
  range: { start_us: number; end_us: number },
): Generator<readonly string[]> {
  const windows = Math.ceil(windowCount(range, window_size));
  const size = Math.max(1, Math.floor(CELLS_AT_ONCE / windows));
  for (let from = 0; from < customers.length; from += size) yield customers.slice(from, from + size);
}
