/** Dates and instants as files write them (docs/rules/imports.md, "Numbers and dates"). */
import { MINUTE_MS } from '../../../foundation/time/durations.ts';
import { instantAt } from '../../../foundation/time/zone.ts';
import { CELL_LENGTH_MAX } from './number-cell.ts';
import type { DateFormat, ImportMappingTerms } from './record.ts';

const TIME = String.raw`(?:[T ,]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?:\s{0,4}([AP]M))?\s*(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?`;
const YEAR_FIRST = new RegExp(String.raw`^(\d{4})([-/.]?)(\d{1,2})\2(\d{1,2})${TIME}$`, 'i');
const YEAR_LAST = new RegExp(String.raw`^(\d{1,2})([-/.])(\d{1,2})\2(\d{4})${TIME}$`, 'i');
const SECONDS = /^(\d{1,11})(?:\.(\d{1,9}))?$/;

type Terms = Pick<ImportMappingTerms, 'date_format' | 'time_zone'>;

/** Converts a cell to an RFC 3339 instant in UTC with the digits of its second; undefined if it is none in this form. */
export function toInstantText(cell: string, terms: Terms): string | undefined {
  const text = cell.trim();
  if (text.length > CELL_LENGTH_MAX) return undefined;
  if (terms.date_format === 'UNIX_SECONDS') return formatSeconds(SECONDS.exec(text));
  if (terms.date_format === 'UNIX_MILLISECONDS')
    return formatSeconds(SECONDS.exec(text.replace(/^(\d+)(\d{3})(?:\.(\d+))?$/, '$1.$2$3')));
  const parts = readDate(text, terms.date_format);
  return parts && formatLocal(parts, terms.time_zone);
}

function formatSeconds(parts: RegExpExecArray | null): string | undefined {
  return parts === null ? undefined : formatInstant(Number(parts[1]) * 1000, parts[2]);
}

type DateParts = {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly time: readonly (string | undefined)[];
};

/** A date that begins with its year is read in any format, because it has one meaning. */
function readDate(text: string, format: DateFormat): DateParts | undefined {
  const first = YEAR_FIRST.exec(text);
  if (first) {
    const [, year, separator, month = '', day = '', ...time] = first;
    if (separator === '' && month.length + day.length !== 4) return undefined;
    return { year: Number(year), month: Number(month), day: Number(day), time };
  }
  const last = format === 'YEAR_FIRST' ? null : YEAR_LAST.exec(text);
  if (last === null) return undefined;
  const [, one, , two, year, ...time] = last;
  const [month, day] = format === 'MONTH_FIRST' ? [one, two] : [two, one];
  return { year: Number(year), month: Number(month), day: Number(day), time };
}

function formatLocal({ year, month, day, time }: DateParts, time_zone: string): string | undefined {
  const [hours = '0', minute = '0', second = '0', fraction, half, offset] = time;
  const hour = half === undefined ? Number(hours) : toFullHour(Number(hours), half);
  const ms = Date.UTC(year, month - 1, day, hour, Number(minute), Number(second));
  const whole = new Date(ms);
  // Date.UTC takes the years 0 to 99 for 1900 to 1999.
  const exists =
    whole.getUTCFullYear() === year &&
    whole.getUTCMonth() === month - 1 &&
    whole.getUTCDate() === day &&
    whole.getUTCHours() === hour &&
    whole.getUTCMinutes() === Number(minute) &&
    whole.getUTCSeconds() === Number(second);
  if (!exists) return undefined;
  if (offset === undefined) return formatInstant(instantAt(time_zone, ms), fraction);
  const minutes = readOffsetMinutes(offset);
  return minutes === undefined ? undefined : formatInstant(ms - minutes * MINUTE_MS, fraction);
}

/** NaN for an hour that no clock with two halves shows. */
function toFullHour(hour: number, half: string): number {
  if (hour < 1 || hour > 12) return Number.NaN;
  return (hour % 12) + (half.toUpperCase() === 'PM' ? 12 : 0);
}

function readOffsetMinutes(offset: string): number | undefined {
  const parts = /^([+-])(\d{2}):?(\d{2})?$/.exec(offset);
  if (parts === null) return 0;
  const [, sign, hours, minutes = '0'] = parts;
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined;
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

function formatInstant(ms: number, fraction: string | undefined): string {
  const text = new Date(ms).toISOString();
  const milliseconds = ms % 1000 === 0 ? '' : text.slice(19, 23);
  return `${text.slice(0, 19)}${fraction === undefined ? milliseconds : `.${fraction}`}Z`;
}
