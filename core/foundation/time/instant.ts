/**
 * An instant is a number of units since 1970-01-01T00:00:00Z. Records store it to the millisecond (docs/rules/records.md,
 * "Times"), events to the microsecond (docs/rules/events.md, "The time of an event"). Both arrive as RFC 3339 text and
 * have one parser; finer digits are cut off downwards.
 *
 * The two units are distinct types: the compiler rejects one in place of the other. A plain number is accepted as either,
 * so that arithmetic stays simple; `toUs` and `toMs` convert the unit.
 */
import { FarthingError, invalid } from '../error.ts';
import { DAY_MS, DAY_SECONDS, HOUR_SECONDS } from './durations.ts';

declare const unit: unique symbol;
export type Microseconds = number & { readonly [unit]?: 'microseconds' };
export type Milliseconds = number & { readonly [unit]?: 'milliseconds' };

export const US_PER_MS = 1000;
export const US_PER_SECOND = 1_000_000;
export const US_PER_MINUTE = 60 * US_PER_SECOND;
export const US_PER_HOUR = 60 * US_PER_MINUTE;
export const US_PER_DAY = 24 * US_PER_HOUR;

export function toUs(ms: Milliseconds): Microseconds {
  return ms * US_PER_MS;
}

/** Rounds down to the millisecond that contains the instant. */
export function toMs(us: Microseconds): Milliseconds {
  return Math.floor(us / US_PER_MS);
}

/** Rounds up to the first millisecond that is not before the instant: the end of a half-open range in coarser units. */
export function ceilToMs(us: Microseconds): Milliseconds {
  return Math.ceil(us / US_PER_MS);
}

/** First second of the range of RFC 3339 in UTC, which has the years 1 to 9999; `+010000-01-01` is not valid. */
const FIRST_SECOND = daysSince1970(1, 1, 1) * DAY_SECONDS;
const END_SECOND = daysSince1970(10_000, 1, 1) * DAY_SECONDS;
export const LAST_INSTANT: Milliseconds = END_SECOND * 1000 - 1;

/** The instant of a record; undefined if the text is not a real RFC 3339 date and time with an offset. */
export function parseInstant(text: string): Milliseconds | undefined {
  const zone = findFractionEnd(text);
  const seconds = zone === undefined ? undefined : toSeconds(text, zone);
  if (seconds === undefined || seconds < FIRST_SECOND || seconds >= END_SECOND) return undefined;
  return seconds * 1000 + parseFraction(text, zone!, 3);
}

export function requireInstant(field: string, text: string): Milliseconds {
  const instant = parseInstant(text);
  if (instant === undefined) throw invalid(field, 'must be an RFC 3339 timestamp');
  return instant;
}

/** Parses the timestamp of a stored record, which was validated when it was written. */
export function toInstant(text: string): Milliseconds {
  const instant = parseInstant(text);
  if (instant === undefined) throw new FarthingError('system_error', `${JSON.stringify(text)} is not a timestamp`);
  return instant;
}

type NotATimestamp = 'absent' | 'malformed' | 'out of range';

/** Earliest instant of an event. The end of all instants is in 2255: a number holds microseconds exactly until then. */
const EARLIEST_US: Microseconds = daysSince1970(1900, 1, 1) * US_PER_DAY;
const END_US: Microseconds = daysSince1970(2255, 1, 1) * US_PER_DAY;
/** Latest end of a range. A range excludes its end, so no range contains an event at this instant, and the event is rejected. */
export const LAST_INSTANT_US: Microseconds = END_US - 1;
const EVENT_FRACTION_DIGITS_MAX = 9;

/** Parses the time of an event. The zero time 0001-01-01T00:00:00Z, which some producers send for "not set", counts as absent. */
export function parseEventTime(text: string): Microseconds | NotATimestamp {
  const zone = findFractionEnd(text);
  if (zone === undefined || zone > 20 + EVENT_FRACTION_DIGITS_MAX) return 'malformed';
  const seconds = toSeconds(text, zone);
  if (seconds === undefined) return 'malformed';
  if (seconds === FIRST_SECOND) return 'absent';
  const us = seconds * US_PER_SECOND + parseFraction(text, zone, 6);
  return us >= EARLIEST_US && us < END_US ? us : 'out of range';
}

/** RFC 3339 in UTC, always with milliseconds: all texts have the same length, so they sort like their instants. */
export function formatMs(instant: Milliseconds): string {
  return new Date(instant).toISOString();
}

/** RFC 3339 in UTC to the microsecond, with only the necessary digits of the fraction and none if it is zero. */
export function formatUs(us: Microseconds): string {
  const days = Math.floor(us / US_PER_DAY);
  let rest = us - days * US_PER_DAY;
  const hour = Math.floor(rest / US_PER_HOUR);
  rest -= hour * US_PER_HOUR;
  const minute = Math.floor(rest / US_PER_MINUTE);
  rest -= minute * US_PER_MINUTE;
  const second = Math.floor(rest / US_PER_SECOND);
  const fraction = rest - second * US_PER_SECOND;
  const time = `${padZeros(hour, 2)}:${padZeros(minute, 2)}:${padZeros(second, 2)}`;
  return `${dateText(days)}T${time}${fraction === 0 ? '' : `.${padZeros(fraction, 6).replace(/0+$/, '')}`}Z`;
}

/**
 * The whole seconds of the text in UTC. Strict: no missing seconds, no times without a zone, no 24:00, no leap second, no
 * day that the calendar lacks. `zone` is the position of the offset.
 */
function toSeconds(text: string, zone: number): number | undefined {
  const year = digitsAt(text, 0, 2) * 100 + digitsAt(text, 2, 2);
  const month = digitsAt(text, 5, 2);
  const day = digitsAt(text, 8, 2);
  const hour = digitsAt(text, 11, 2);
  const minute = digitsAt(text, 14, 2);
  const second = digitsAt(text, 17, 2);
  if (!hasSeparators(text)) return undefined;
  // A part that is not all digits is NaN, and every comparison with NaN is false.
  if (!(hour <= 23 && minute <= 59 && second <= 59 && year >= 0)) return undefined;
  if (!(month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month))) return undefined;
  const offset = offsetSeconds(text, zone);
  if (offset === undefined) return undefined;
  return daysSince1970(year, month, day) * DAY_SECONDS + hour * HOUR_SECONDS + minute * 60 + second - offset;
}

function digitsAt(text: string, from: number, count: number): number {
  let value = 0;
  for (let at = from; at < from + count; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
}

function hasSeparators(text: string): boolean {
  const t = text.charCodeAt(10);
  return (
    text.charCodeAt(4) === 45 &&
    text.charCodeAt(7) === 45 &&
    (t === 84 || t === 116) &&
    text.charCodeAt(13) === 58 &&
    text.charCodeAt(16) === 58
  );
}

/** The position of the zone; undefined if the fraction has no digit. */
function findFractionEnd(text: string): number | undefined {
  if (text.charCodeAt(19) !== 46) return 19;
  let at = 20;
  while (text.charCodeAt(at) >= 48 && text.charCodeAt(at) <= 57) at++;
  return at > 20 ? at : undefined;
}

/** The first `digits` digits of the fraction as an integer, padded with zeros. */
function parseFraction(text: string, end: number, digits: 3 | 6): number {
  let value = 0;
  for (let at = 20; at < 20 + digits; at++) value = value * 10 + (at < end ? text.charCodeAt(at) - 48 : 0);
  return value;
}

/** The offset of the zone from UTC in seconds; undefined if it is not the end of a well-formed timestamp. */
function offsetSeconds(text: string, at: number): number | undefined {
  const sign = text.charCodeAt(at);
  if (sign === 90 || sign === 122) return text.length === at + 1 ? 0 : undefined;
  if ((sign !== 43 && sign !== 45) || text.length !== at + 6 || text.charCodeAt(at + 3) !== 58) return undefined;
  const hours = digitsAt(text, at + 1, 2);
  const minutes = digitsAt(text, at + 4, 2);
  if (!(hours <= 23 && minutes <= 59)) return undefined;
  return (sign === 45 ? -1 : 1) * (hours * 3600 + minutes * 60);
}

const DAYS_IN_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function daysInMonth(year: number, month: number): number {
  if (month === 2 && isLeap(year)) return 29;
  return DAYS_IN_MONTH[month - 1]!;
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/**
 * Days of a date in the proleptic Gregorian calendar, which UTC uses, for any year; months and days count from 1. Years
 * are counted from March, so that the leap day is the last day of a year.
 */
export function daysSince1970(year: number, month: number, day: number): number {
  const y = month > 2 ? year : year - 1;
  const monthFromMarch = month > 2 ? month - 3 : month + 9;
  const dayOfYear = Math.floor((153 * monthFromMarch + 2) / 5) + day - 1;
  return 365 * y + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + dayOfYear - 719_468;
}

function dateText(days: number): string {
  const date = new Date(days * DAY_MS);
  return `${padZeros(date.getUTCFullYear(), 4)}-${padZeros(date.getUTCMonth() + 1, 2)}-${padZeros(date.getUTCDate(), 2)}`;
}

function padZeros(value: number, width: number): string {
  return String(value).padStart(width, '0');
}
