/**
 * Gives an event that says no time the instant that it is in its environment, where that is not the machine's
 * (docs/rules/clock.md, "Events"): written into its text, so that whoever reads the log needs to know nothing about clocks. The rest
 * of the text stays as it came. The offset -00:00, which RFC 3339 has for a time whose place nobody stated, says that the sender did
 * not state this one: what is sent again when the clock has moved is the same event (docs/rules/identity.md).
 */
import { invalid } from '../error.ts';
import { CLOSE_BRACE } from '../json/characters.ts';
import { findValueEnd, skipBlanks } from '../json/text.ts';
import { properties, type TextSpan } from '../metering/event-text.ts';
import { formatMs, type Milliseconds, parseEventTime } from '../time/instant.ts';

/** `text` has one character per byte, and a JSON object at the span. */
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

/** Whether the sender stated the time. */
export function isTimestampSent(timestamp: string): boolean {
  return !timestamp.endsWith(UNKNOWN_OFFSET);
}

/** The microseconds that an event says; undefined where it says none. */
export function parseEventTimestamp(text: string): number | undefined {
  if (text === '') return undefined;
  const instant = parseEventTime(text);
  if (instant === 'absent') return undefined;
  if (typeof instant === 'string') throw invalid('timestamp', `is ${instant}`);
  return instant;
}
