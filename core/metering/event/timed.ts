/**
 * Adds the time of its environment to an event without a time, if the environment's clock is not the machine's
 * (docs/rules/clock.md, "Events"). The time is written into the text, so readers of the log need no clock. The rest of
 * the text is unchanged. The offset -00:00, which RFC 3339 defines for an unknown local offset, marks that the sender
 * sent no time. An event that is sent again after the clock has moved is therefore still the same event
 * (docs/rules/identity.md).
 */
import { invalid } from '../../foundation/error.ts';
import { CLOSE_BRACE } from '../../foundation/json/characters.ts';
import { findValueEnd, skipBlanks } from '../../foundation/json/text.ts';
import { formatMs, type Milliseconds, parseEventTime } from '../../foundation/time/instant.ts';
import { properties, type TextSpan } from '../event-text.ts';

/** Adds a timestamp to the JSON object at the span. `text` has one character per byte. */
export function addTimestamp(text: string, span: TextSpan, now: Milliseconds): string {
  const timestamp = JSON.stringify(formatMs(now).replace('Z', UNKNOWN_OFFSET));
  const open = skipBlanks(text, span.start, span.end);
  const end = findValueEnd(text, open, span.end);
  const value = properties(text, open, end).findSpan('timestamp');
  if (value === undefined) {
    const isEmpty = text.charCodeAt(skipBlanks(text, open + 1, end)) === CLOSE_BRACE;
    return `{"timestamp":${timestamp}${isEmpty ? '' : ','}${text.slice(open + 1, end)}`;
  }
  const sent = text.slice(value.start, value.end);
  if (hasTime(sent)) return text.slice(open, end);
  return text.slice(open, value.start) + timestamp + text.slice(value.end, end);
}

function hasTime(sent: string): boolean {
  return sent !== 'null' && sent !== '""' && parseEventTime(sent.slice(1, -1)) !== 'absent';
}

const UNKNOWN_OFFSET = '-00:00';

export function isTimestampSent(timestamp: string): boolean {
  return !timestamp.endsWith(UNKNOWN_OFFSET);
}

/** Parses the time of an event to microseconds; undefined if the event has none. */
export function parseEventTimestamp(text: string): number | undefined {
  if (text === '') return undefined;
  const instant = parseEventTime(text);
  if (instant === 'absent') return undefined;
  if (typeof instant === 'string') throw invalid('timestamp', `is ${instant}`);
  return instant;
}
