/** Parameters of the usage export: range, split, columns and byte order mark. */
import { z } from 'zod';
import { invalid } from '../../../core/foundation/error.ts';
import { anyCase, orDefault, orNull } from '../../../core/foundation/record.ts';
import { type Microseconds, parseEventTime, toMs, toUs } from '../../../core/foundation/time/instant.ts';
import { checkRange, type RequestedRange } from '../../../core/foundation/time/range.ts';
import { windowCount } from '../../../core/foundation/time/window.ts';
import { firstInstantAt } from '../../../core/foundation/time/zone.ts';
import { instantFormat } from '../../../core/platform/export/record.ts';
import { SPLITS, type Split } from '../../../core/rating/charge-intervals.ts';
import { textList } from '../../http/list.ts';
import { anyTimezone } from '../../metering/usage/query-fields.ts';

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** Each end has its own example, so that the two examples are a valid range. */
const dateOrInstant = (example: string) =>
  z
    .string()
    .refine((text) => typeof parsed(text) === 'number', {
      error: 'must be a date (2026-03-01) or an RFC 3339 timestamp',
    })
    .meta({
      description:
        'Date or RFC 3339 timestamp. A date is its midnight in `timezone`: from 2026-03-01 to 2026-04-01 is March.',
      example,
    });

export const YES_OR_NO = z.enum(['true', 'false']).transform((text) => text === 'true');

export const ExportQuery = z.object({
  start_time: dateOrInstant('2026-03-01'),
  end_time: dateOrInstant('2026-04-01'),
  meter_ids: textList.optional().meta({ description: 'Meters to export; all published ones if absent or empty.' }),
  metadata_columns: textList
    .optional()
    .meta({ description: 'Metadata keys of the customers; each becomes a column.', example: ['region', 'tier'] }),
  timezone: anyTimezone.meta({
    description: 'IANA timezone of the dates, and of the days or months of `split`. Default: UTC.',
  }),
  split: orNull(anyCase(SPLITS)).meta({
    description:
      'Splits the range into a record per day or month in `timezone`. Default: one record for the range. More than 400 days are refused.',
  }),
  amounts: YES_OR_NO.optional().meta({
    description: 'True for a record per charge, with plan, price, amount, currency and invoice. Default: false.',
  }),
  instant_format: orDefault(instantFormat, 'rfc3339').meta({
    description:
      'Format of instants: rfc3339, or spreadsheet (`2026-03-01 10:00:00` in UTC, read as a date). Default: rfc3339.',
  }),
  bom: YES_OR_NO.optional().meta({
    description:
      'True to begin the file with a byte order mark, by which Excel recognizes UTF-8. Default: true for browsers only.',
  }),
});
export type ExportQuery = z.output<typeof ExportQuery>;

/** Reads a date as its midnight in UTC. */
function parsed(text: string) {
  return parseEventTime(DATE.test(text) ? `${text}T00:00:00Z` : text);
}

export function exportRange({ start_time, end_time, timezone, split }: ExportQuery): RequestedRange {
  const instant = (text: string) => {
    const us = parsed(text) as Microseconds;
    return DATE.test(text) ? toUs(firstInstantAt(timezone ?? 'UTC', toMs(us))) : us;
  };
  const range = checkRange({ start_us: instant(start_time), end_us: instant(end_time) });
  checkSplit(range, split);
  return range;
}

/** Maximum number of days in a split, because with amounts each day queries every charge. */
const DAYS_MAX = 400;

function checkSplit(range: RequestedRange, split: Split | null): void {
  if (split === null || windowCount(range, 'DAY') <= DAYS_MAX) return;
  throw invalid('split', `a range of more than ${DAYS_MAX} days is not split: ask for a shorter one`);
}
