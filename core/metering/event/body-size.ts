/**
 * Limits the number of values in a body of events that must be parsed to objects (docs/rules/events.md, "A request is
 * checked whole"). 32 MiB of empty objects are small if compressed, but parsing them takes seconds in which no other
 * request is served. Counting them takes a tenth of a second.
 */
import { invalid } from '../../foundation/error.ts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../foundation/json/characters.ts';
import { EVENTS_PER_REQUEST_MAX, tooManyEvents } from './accept.ts';

/**
 * Maximum number of elements and members at every depth; an empty object or array counts as two. The limit equals 200 for each of
 * EVENTS_PER_REQUEST_MAX events.
 */
export const VALUES_MAX = 200_000;

/** Position of the events: the body is the array, or the array is under its key `events`. */
export type EventsAt = 'body' | 'events';

/** Throws if there are too many values. The parser checks whether the body is JSON; a body rejected here never reaches it. */
export function checkBodySize(bytes: Uint8Array, events_at?: EventsAt): void {
  // Each value takes at least one byte.
  if (bytes.length <= VALUES_MAX) return;
  const { values, events } = countValues(bytes, events_at && DEPTH_OF_EVENTS[events_at]);
  if (values <= VALUES_MAX) return;
  if (events_at && events > EVENTS_PER_REQUEST_MAX) throw tooManyEvents(events_at, events);
  throw invalid('body', `must not hold more than ${VALUES_MAX} values: send smaller requests`, { limit: VALUES_MAX });
}

const DEPTH_OF_EVENTS: Record<EventsAt, number> = { body: 1, events: 2 };

/** Counts the elements of the last array at `events_depth` as events. */
function countValues(bytes: Uint8Array, events_depth: number | undefined): { values: number; events: number } {
  let values = 0;
  let events = 0;
  let depth = 0;
  let isInEvents = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === COMMA) {
      values++;
      if (isInEvents && depth === events_depth) events++;
    } else if (byte === QUOTE) at = findClosingQuote(bytes, at);
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      values++;
      depth++;
      if (depth !== events_depth) continue;
      isInEvents = byte === OPEN_BRACKET;
      if (isInEvents) events = 1;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
  }
  return { values, events };
}

function findClosingQuote(bytes: Uint8Array, open: number): number {
  let at = open + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
