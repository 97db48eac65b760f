/** What the usage export is asked with: dates or instants, cuts, columns, and how the file begins. */
import { z } from 'zod';
import { SPLITS, type Split } from '../../core/billing/charge-intervals.ts';
import { invalid } from '../../core/error.ts';
import { anyCase, orNull } from '../../core/record.ts';
import { type Microseconds, parseEventTime, toMs, toUs } from '../../core/time/instant.ts';
import { windowCount } from '../../core/time/window.ts';
import { firstInstantAt } from '../../core/time/zone.ts';
import { textList } from '../http/list.ts';
import { anyTimezone, checkRange, type RequestedRange } from './usage-query-fields.ts';

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** Each end with an example of its own: together they are a range. */
const dateOrInstant = (example: string) =>
  z
    .string()
    .refine((text) => typeof parsed(text) === 'number', {
      error: 'must be a date (2026-03-01) or an RFC 3339 timestamp',
    })
    .meta({
      description: 'A date is its midnight on the clock of `timezone`: from 2026-03-01 to 2026-04-01 is March.',
      example,
    });

export const YES_OR_NO = z.enum(['true', 'false']).transform((text) => text === 'true');

export const ExportQuery = z.object({
  start_time: dateOrInstant('2026-03-01'),
  end_time: dateOrInstant('2026-04-01'),
  meter_ids: textList.optional().meta({ description: 'All published meters when absent or empty.' }),
  metadata_columns: textList
    .optional()
    .meta({ description: 'Keys of the customers’ metadata, each a column of its own.', example: ['region', 'tier'] }),
  timezone: anyTimezone.meta({ description: 'An IANA name, on whose clock dates and cuts are; UTC when absent.' }),
  split: orNull(anyCase(SPLITS)).meta({
    description: 'A record for each day or month on the clock of `timezone` instead of one for the range.',
  }),
  amounts: YES_OR_NO.optional().meta({
    description: 'A record for each charge, with plan, price, amount, currency and invoice.',
  }),
  bom: YES_OR_NO.optional().meta({
    description: 'Begins the file with a byte order mark, by which Excel knows UTF-8; by default for browsers alone.',
  }),
});
export type ExportQuery = z.output<typeof ExportQuery>;

/** A date as if its midnight were that of UTC. */
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

/** With amounts each of them is a question about every charge. */
const DAYS_MAX = 400;

function checkSplit(range: RequestedRange, split: Split | null): void {
  if (split === null || windowCount(range, 'DAY') <= DAYS_MAX) return;
  throw invalid('split', `a range of more than ${DAYS_MAX} days is not split: ask for a shorter one`);
}
