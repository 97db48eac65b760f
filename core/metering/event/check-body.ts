/**
 * Checks in one pass over the bytes of a bulk body, without building objects, whether it can be accepted unchanged. It
 * must be valid JSON, and each event must satisfy `findEventFault` (docs/rules/events.md, "A request is checked whole").
 * The result is the positions of the events and their ids, or undefined. Undefined means undecided: a fault, or something
 * rare such as an escape in a field or a key that events do not have. Then the full check with JSON.parse and
 * `findEventFault` decides. Everything accepted here must therefore be accepted there with equal ids. Only the full check
 * creates error messages.
 *
 * The bytes must be valid UTF-8: the full check would read invalid bytes as U+FFFD.
 */

import {
  byteAt,
  hasText,
  isDigit,
  NULL,
  skipBlanks,
  skipObject,
  skipPlainString,
  skipValue,
  toCodes,
  UNKNOWN,
} from '../../foundation/json/bytes.ts';
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../foundation/json/characters.ts';
import { LAST_INSTANT_US, parseEventTime } from '../../foundation/time/instant.ts';
import type { TextSpan } from '../event-text.ts';
import { EVENTS_PER_REQUEST_MAX, RESERVED_ID, TEXT_MAX } from './accept.ts';
import { EventShape } from './event-shape.ts';

/** Events that may be accepted; positions are byte offsets in the body. */
export type CheckedEvents = {
  readonly count: number;
  /** The array of the events, from bracket to bracket. */
  readonly start: number;
  readonly end: number;
  /** MARKS_PER_EVENT positions per event: its start and end, then those of its id without the quotes, 0 and 0 without an id. */
  readonly marks: Int32Array;
};

const MARKS_PER_EVENT = 4;

export function eventSpan({ marks }: CheckedEvents, index: number): TextSpan {
  return { start: marks[MARKS_PER_EVENT * index]!, end: marks[MARKS_PER_EVENT * index + 1]! };
}

/** Returns the start and the end of an event's id; the end is 0 if the event has no id. */
export function idSpan({ marks }: CheckedEvents, index: number): TextSpan {
  return { start: marks[MARKS_PER_EVENT * index + 2]!, end: marks[MARKS_PER_EVENT * index + 3]! };
}

/**
 * Raw events only need to be objects; `canHold` decides whether they may have a key that is no event field
 * (core/metering/event/raw-keys.ts).
 */
export type EventRules = 'events' | { readonly canHold: (key: string) => boolean };

/** Checks a body that must be an object with only the array `events`. */
export function checkBulk(bytes: Uint8Array, rules: EventRules): CheckedEvents | undefined {
  const brace = skipBlanks(bytes, 0);
  const key = skipBlanks(bytes, brace + 1);
  if (byteAt(bytes, brace) !== OPEN_BRACE || !hasText(bytes, key, EVENTS_KEY)) return undefined;
  const colon = skipBlanks(bytes, key + EVENTS_KEY.length);
  if (byteAt(bytes, colon) !== COLON) return undefined;
  const start = skipBlanks(bytes, colon + 1);
  const walk = new BulkWalk(bytes, rules);
  const end = walk.skipEvents(start);
  if (end < 0) return undefined;
  const last = skipBlanks(bytes, end);
  if (byteAt(bytes, last) !== CLOSE_BRACE || skipBlanks(bytes, last + 1) !== bytes.length) return undefined;
  return { count: walk.count, start, end, marks: walk.marks };
}

const EVENTS_KEY = toCodes('"events"');

/** Bits for a set of event fields. `findEventFault` checks each of these fields. */
const OTHER = 0;
const EVENT_ID = 1;
const EVENT_NAME = 2;
const EXTERNAL_CUSTOMER_ID = 4;
const CUSTOMER_ID = 8;
const TIMESTAMP = 16;
const SOURCE = 32;
const PROPERTIES = 64;
const REQUIRED = EVENT_NAME | EXTERNAL_CUSTOMER_ID;

class BulkWalk {
  count = 0;
  readonly marks = new Int32Array(MARKS_PER_EVENT * EVENTS_PER_REQUEST_MAX);
  private readonly bytes: Uint8Array;
  private readonly isRaw: boolean;
  /** Decides whether an event may have a key that is no event field. For raw events it is called once per shape. */
  private readonly canHold: (key: string) => boolean;
  private readonly shape: EventShape;
  private learnt = 0;

  constructor(bytes: Uint8Array, rules: EventRules) {
    this.bytes = bytes;
    this.isRaw = rules !== 'events';
    this.canHold = rules === 'events' ? () => false : rules.canHold;
    this.shape = new EventShape(bytes);
  }

  /** Returns the position after the array of valid events that begins at `start`. */
  skipEvents(start: number): number {
    const { bytes, marks } = this;
    if (byteAt(bytes, start) !== OPEN_BRACKET) return UNKNOWN;
    let at = skipBlanks(bytes, start + 1);
    while (this.count < EVENTS_PER_REQUEST_MAX) {
      let end = this.skipKnownEvent(at);
      if (end < 0) end = this.skipNewEvent(at);
      if (end < 0) return UNKNOWN;
      marks[MARKS_PER_EVENT * this.count] = at;
      marks[MARKS_PER_EVENT * this.count + 1] = end;
      this.count++;
      at = skipBlanks(bytes, end);
      const byte = byteAt(bytes, at);
      if (byte === CLOSE_BRACKET) return at + 1;
      if (byte !== COMMA) return UNKNOWN;
      at = skipBlanks(bytes, at + 1);
    }
    return UNKNOWN;
  }

  /** Returns the position after the valid event at `start`, if it has the learned shape. */
  private skipKnownEvent(start: number): number {
    const { shape } = this;
    const values = shape.count;
    if (values === 0) return UNKNOWN;
    let at = start;
    for (let value = 0; value < values; value++) {
      at = shape.skipBytesBefore(value, at);
      if (at < 0) return UNKNOWN;
      at = this.skipField(shape.fields[value]!, at);
      if (at < 0) return UNKNOWN;
    }
    return shape.skipBytesBefore(values, at);
  }

  /**
   * Skips an event without the learned shape, and learns its shape. If events rarely repeat a shape, it learns no more, because that
   * would only cost time.
   */
  private skipNewEvent(start: number): number {
    const end = this.skipEvent(start);
    if (end >= 0 && this.learnt <= this.count / 2 + 8) {
      this.learnt++;
      this.shape.learn(start, end, (keyStart, keyEnd) => fieldAt(this.bytes, keyStart, keyEnd));
    }
    return end;
  }

  /** Returns the position after the valid event at `start`. */
  private skipEvent(start: number): number {
    const { bytes, isRaw } = this;
    if (byteAt(bytes, start) !== OPEN_BRACE) return UNKNOWN;
    let at = skipBlanks(bytes, start + 1);
    if (isRaw && byteAt(bytes, at) === CLOSE_BRACE) return at + 1;
    let seen = 0;
    while (byteAt(bytes, at) === QUOTE) {
      const keyEnd = skipPlainString(bytes, at);
      if (keyEnd < 0) return UNKNOWN;
      const field = fieldAt(bytes, at + 1, keyEnd - 1);
      // The full check rejects a repeated key.
      if ((seen & field) !== 0) return UNKNOWN;
      // The full check rejects an unknown key, or accepts and reports it.
      if (field === OTHER && !this.canHold(this.keyAt(at + 1, keyEnd - 1))) return UNKNOWN;
      seen |= field;
      at = skipBlanks(bytes, keyEnd);
      if (byteAt(bytes, at) !== COLON) return UNKNOWN;
      at = this.skipField(field, skipBlanks(bytes, at + 1));
      if (at < 0) return UNKNOWN;
      at = skipBlanks(bytes, at);
      const byte = byteAt(bytes, at);
      if (byte === CLOSE_BRACE) return isRaw || (seen & REQUIRED) === REQUIRED ? at + 1 : UNKNOWN;
      if (byte !== COMMA) return UNKNOWN;
      at = skipBlanks(bytes, at + 1);
    }
    return UNKNOWN;
  }

  private keyAt(start: number, end: number): string {
    return TEXT.decode(this.bytes.subarray(start, end));
  }

  /** Returns the position after the value of a field at `start`, if the value is valid. */
  private skipField(field: number, start: number): number {
    const { bytes } = this;
    if (field === OTHER || (this.isRaw && field !== EVENT_ID)) return skipValue(bytes, start);
    if (field === PROPERTIES && byteAt(bytes, start) === OPEN_BRACE) return skipObject(bytes, start);
    if (byteAt(bytes, start) !== QUOTE) {
      const isAbsent = (field & REQUIRED) === 0 && hasText(bytes, start, NULL);
      return isAbsent ? start + NULL.length : UNKNOWN;
    }
    const end = skipPlainString(bytes, start);
    // A number of bytes is an upper bound for the number of characters.
    if (end < 0 || end - start - 2 > TEXT_MAX || field === PROPERTIES) return UNKNOWN;
    if (field === TIMESTAMP) return isTimestamp(bytes, start + 1, end - 1) ? end : UNKNOWN;
    if (field === CUSTOMER_ID || field === SOURCE) return end;
    const isEmpty = end === start + 2;
    if (isEmpty) return field === EVENT_ID ? end : UNKNOWN;
    if (field === EVENT_ID) {
      if (hasText(bytes, start + 1, RESERVED_ID_CODES)) return UNKNOWN;
      this.marks[MARKS_PER_EVENT * this.count + 2] = start + 1;
      this.marks[MARKS_PER_EVENT * this.count + 3] = end - 1;
    }
    return isSurelyVisible(byteAt(bytes, start + 1)) ? end : UNKNOWN;
  }
}

const TEXT = new TextDecoder();
const RESERVED_ID_CODES = toCodes(RESERVED_ID);
const EVENT_ID_KEY = toCodes('event_id');
const EVENT_NAME_KEY = toCodes('event_name');
const EXTERNAL_CUSTOMER_ID_KEY = toCodes('external_customer_id');
const CUSTOMER_ID_KEY = toCodes('customer_id');
const TIMESTAMP_KEY = toCodes('timestamp');
const SOURCE_KEY = toCodes('source');
const PROPERTIES_KEY = toCodes('properties');

function fieldAt(bytes: Uint8Array, start: number, end: number): number {
  switch (end - start) {
    case 6:
      return hasText(bytes, start, SOURCE_KEY) ? SOURCE : OTHER;
    case 8:
      return hasText(bytes, start, EVENT_ID_KEY) ? EVENT_ID : OTHER;
    case 9:
      return hasText(bytes, start, TIMESTAMP_KEY) ? TIMESTAMP : OTHER;
    case 10:
      if (hasText(bytes, start, EVENT_NAME_KEY)) return EVENT_NAME;
      return hasText(bytes, start, PROPERTIES_KEY) ? PROPERTIES : OTHER;
    case 11:
      return hasText(bytes, start, CUSTOMER_ID_KEY) ? CUSTOMER_ID : OTHER;
    case 20:
      return hasText(bytes, start, EXTERNAL_CUSTOMER_ID_KEY) ? EXTERNAL_CUSTOMER_ID : OTHER;
    default:
      return OTHER;
  }
}

/**
 * Whether a text with this first byte cannot be blank. A byte of `BEGIN_BLANKS` may begin white space beyond ASCII, so
 * such a text needs a full check.
 */
function isSurelyVisible(first: number): boolean {
  return first > 32 && !BEGIN_BLANKS.includes(first);
}
const BEGIN_BLANKS: readonly number[] = [0xc2, 0xe1, 0xe2, 0xe3, 0xef];

/**
 * Whether the text is a timestamp. The common form in UTC is checked in the bytes, any other form as a string; an empty
 * text counts as absent.
 */
function isTimestamp(bytes: Uint8Array, start: number, end: number): boolean {
  if (start === end || isCommonInstant(bytes, start, end)) return true;
  const instant = parseEventTime(String.fromCharCode(...bytes.subarray(start, end)));
  return instant === 'absent' || (typeof instant === 'number' && instant < LAST_INSTANT_US);
}

/**
 * Whether the text is a timestamp like 2026-01-31T10:00:00.123Z, with up to nine digits of a fraction. False for rare
 * forms, such as 29 February and the last accepted year, which the full check decides.
 */
function isCommonInstant(bytes: Uint8Array, start: number, end: number): boolean {
  const length = end - start;
  if (length < 20 || length > 30 || bytes[end - 1] !== LETTER_Z || bytes[start + 10] !== LETTER_T) return false;
  if (bytes[start + 4] !== MINUS || bytes[start + 7] !== MINUS) return false;
  if (bytes[start + 13] !== COLON || bytes[start + 16] !== COLON) return false;
  if (length > 20 && (length === 21 || bytes[start + 19] !== DOT)) return false;
  for (let at = start + 20; at < end - 1; at++) if (!isDigit(bytes[at]!)) return false;
  const year = twoDigits(bytes, start) * 100 + twoDigits(bytes, start + 2);
  const month = twoDigits(bytes, start + 5);
  const day = twoDigits(bytes, start + 8);
  if (!(year >= 1900 && year < 2254 && month >= 1 && month <= 12 && day >= 1)) return false;
  if (day > DAYS_IN_MONTH[month - 1]!) return false;
  const hour = twoDigits(bytes, start + 11);
  const minute = twoDigits(bytes, start + 14);
  const second = twoDigits(bytes, start + 17);
  return hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59 && second >= 0 && second <= 59;
}

const MINUS = 45;
const DOT = 46;
const LETTER_T = 84;
const LETTER_Z = 90;
const DAYS_IN_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Reads two digits as a number. The result is far below zero if one of the bytes is not a digit. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = bytes[at]!;
  const ones = bytes[at + 1]!;
  return isDigit(tens) && isDigit(ones) ? (tens - 48) * 10 + ones - 48 : -100_000;
}
