/**
 * JSON whose numbers keep their digits. A number is held as a text with a mark before it, because a floating-point number has no more
 * than 17 digits, and an event that is corrected must not lose one.
 */
const MARK = '\u0000';
const TOKENS = /("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)/g;

/** Parses a text; throws a SyntaxError as `JSON.parse` does. */
export function parseExact(text: string): unknown {
  JSON.parse(text);
  return JSON.parse(
    text.replaceAll(TOKENS, (_, string?: string, number?: string) => string ?? JSON.stringify(`${MARK}${number}`)),
  );
}

/** Parses an answer that has events: numbers keep their digits in `properties`, and are numbers elsewhere. */
export function parseEvents(text: string): unknown {
  return readNumbers(parseExact(text));
}

function readNumbers(value: unknown): unknown {
  if (typeof value === 'string') return value.startsWith(MARK) ? Number(value.slice(1)) : value;
  if (Array.isArray(value)) return value.map(readNumbers);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, key === 'properties' ? inner : readNumbers(inner)]);
  return Object.fromEntries(entries);
}

export function formatExact(value: unknown, indent = 0): string {
  return restoreNumbers(JSON.stringify(value, null, indent));
}

/** Turns the marked numbers in JSON text into numbers again, such as in a command that has JSON inside. */
export function restoreNumbers(text: string): string {
  return text.replaceAll(/"\\u0000(-?\d[\d.eE+-]*)"/g, '$1');
}

/** A value for the screen: a number as its digits, a text as it is, anything else as JSON. */
export function formatExactValue(value: unknown): string {
  if (typeof value !== 'string') return formatExact(value);
  return value.startsWith(MARK) ? value.slice(1) : value;
}

/** Options of a request whose body is a text of `formatExact`. */
export const exactBody = {
  bodySerializer: (body: unknown) => body as string,
  headers: { 'content-type': 'application/json' },
};
