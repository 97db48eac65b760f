/**
 * Gives an event that says no time the instant that it is in its environment, where that is not the machine's
 * (docs/rules/clock.md, "Events"): written into its text, so that whoever reads the log needs to know nothing about clocks. The rest
 * of the text stays as it came.
 */
import { CLOSE_BRACE } from '../json/signs.ts';
import { endOfValue, skipBlanks } from '../json/text.ts';
import { properties, type Span } from '../metering/event-text.ts';
import { formatMs, type Milliseconds } from '../time/instant.ts';

/** `text` has one character per byte, and a JSON object at the span. */
export function timedEvent(text: string, span: Span, now: Milliseconds): string {
  const timestamp = JSON.stringify(formatMs(now));
  const open = skipBlanks(text, span.start, span.end);
  const end = endOfValue(text, open, span.end);
  const value = properties(text, open, end).spanOf('timestamp');
  if (value === undefined) {
    const isEmpty = text.charCodeAt(skipBlanks(text, open + 1, end)) === CLOSE_BRACE;
    return `{"timestamp":${timestamp}${isEmpty ? '' : ','}${text.slice(open + 1, end)}`;
  }
  const given = text.slice(value.start, value.end);
  if (given !== 'null' && given !== '""') return text.slice(open, end);
  return text.slice(open, value.start) + timestamp + text.slice(value.end, end);
}
