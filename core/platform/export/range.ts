/** Time range of an export (docs/rules/exports.md, "The range"): [start, end). */
import { invalid } from '../../foundation/error.ts';
import { formatUs, type Microseconds, US_PER_DAY } from '../../foundation/time/instant.ts';
import { checkRange, type RequestedRange } from '../../foundation/time/range.ts';

/** Maximum length of a range: one year, including a leap day. */
const DAYS_MAX = 366;

/** Throws if the range is empty, ends in the future, or is longer than a year. */
export function checkExportRange(range: RequestedRange, now_us: Microseconds): RequestedRange {
  const { start_us, end_us } = checkRange(range);
  if (end_us > now_us) throw invalid('end_time', `must not be in the future: it is ${formatUs(now_us)}`);
  if (end_us - start_us > DAYS_MAX * US_PER_DAY) throw invalid('start_time', 'a range is a year at most');
  return range;
}
