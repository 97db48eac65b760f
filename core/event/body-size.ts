/**
 * How much a body of events may hold where it has to be made into values (docs/rules/events.md, "A request is checked whole"). 32 MiB of
 * empty objects are short where they are packed, and take seconds in which nobody else is served; counting them takes a tenth of one.
 */
import { invalid } from '../error.ts';
import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../json/characters.ts';
import { EVENTS_PER_REQUEST_MAX, tooManyEvents } from './accept.ts';

/** Elements and members at every depth, an empty object or array counting as two: 200 of each of as many events as there may be. */
export const VALUES_MAX = 200_000;

/** What of the body is its events: the array that it is, or that under its key `events`. */
export type EventsAt = 'body' | 'events';

/** Throws what there is too much of. Whether it is JSON at all is left to the parser, which such a body does not reach. */
export function checkBodySize(bytes: Uint8Array, events_at?: EventsAt): void {
  // Each takes a byte or more.
  if (bytes.length <= VALUES_MAX) return;
  const { values, events } = countValues(bytes, events_at && DEPTH_OF_EVENTS[events_at]);
  if (values <= VALUES_MAX) return;
  if (events_at && events > EVENTS_PER_REQUEST_MAX) throw tooManyEvents(events_at, events);
  throw invalid('body', `must not hold more than ${VALUES_MAX} values: send smaller requests`, { limit: VALUES_MAX });
}

const DEPTH_OF_EVENTS: Record<EventsAt, number> = { body: 1, events: 2 };

/** Events are the elements of the last array at this depth. */
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

/** The closing quote of the string that opens at `open`. */
function findClosingQuote(bytes: Uint8Array, open: number): number {
  let at = open + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
