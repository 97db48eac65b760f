/** The time of which an export is (docs/rules/exports.md, "The range"): [start, end). */
import { invalid } from '../error.ts';
import { formatUs, type Microseconds, US_PER_DAY } from '../time/instant.ts';

export type ExportRange = { readonly start_us: Microseconds; readonly end_us: Microseconds };

/** A year, also one with a leap day. */
const DAYS_MAX = 366;

/** A range that ends before it begins, reaches beyond now, or is longer than a year is refused. */
export function checkExportRange(range: ExportRange, now_us: Microseconds): ExportRange {
  const { start_us, end_us } = range;
  if (end_us <= start_us) throw invalid('end_time', `must be after start_time ${formatUs(start_us)}`);
  if (end_us > now_us) throw invalid('end_time', `must not be in the future: it is ${formatUs(now_us)}`);
  if (end_us - start_us > DAYS_MAX * US_PER_DAY) throw invalid('start_time', 'a range is a year at most');
  return range;
}
