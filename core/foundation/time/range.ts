/** A requested range of time: [start, end). */
import { invalid } from '../error.ts';
import { formatUs, type Microseconds } from './instant.ts';

export type RequestedRange = { readonly start_us: Microseconds; readonly end_us: Microseconds };

/** Throws if the range is empty. */
export function checkRange<Range extends RequestedRange>(range: Range): Range {
  if (range.end_us <= range.start_us) throw invalid('end_time', `must be after start_time ${formatUs(range.start_us)}`);
  return range;
}
