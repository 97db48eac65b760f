/**
 * Walks over JSON text by position: ends of strings and values, and the step from one member to the next. The text must
 * be valid JSON; on any other text the walk ends with an error and never runs on.
 *
 * The end of a string is returned as `~end` if it contains an escape, so that plain strings are sliced, not decoded.
 */

import { invalid } from '../error.ts';
import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './characters.ts';

export function skipBlanks(text: string, from: number, end: number): number {
  if (text.charCodeAt(from) > 32) return from;
  let at = from;
  while (at < end && text.charCodeAt(at) <= 32) at++;
  return at;
}

/** The position after the closing quote of the string at `open`; `~` of it if the string has an escape. */
export function findStringEnd(text: string, open: number, end: number): number {
  let escaped = false;
  for (let at = open + 1; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return escaped ? ~(at + 1) : at + 1;
    if (code === BACKSLASH) {
      escaped = true;
      at++;
    }
  }
  throw invalid('body', 'must be valid JSON');
}

/** The string between the quotes. JSON.parse decodes the rare one with escapes, including lone surrogates. */
export function stringAt(text: string, open: number, end: number): string {
  return end < 0 ? (JSON.parse(text.slice(open, ~end)) as string) : text.slice(open + 1, end - 1);
}

export function findValueStart(text: string, keyEnd: number, end: number): number {
  const colon = skipBlanks(text, keyEnd < 0 ? ~keyEnd : keyEnd, end);
  if (text.charCodeAt(colon) !== COLON) throw invalid('body', 'must be valid JSON');
  return skipBlanks(text, colon + 1, end);
}

export function findValueEnd(text: string, start: number, end: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) {
    const after = findStringEnd(text, start, end);
    return after < 0 ? ~after : after;
  }
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return findNestedEnd(text, start, end);
  let at = start;
  while (at < end && !endsLiteral(text.charCodeAt(at))) at++;
  if (at === start) throw invalid('body', 'must be valid JSON');
  return at;
}

function endsLiteral(code: number): boolean {
  return code <= 32 || code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET;
}

/** Finds the end of a nested value. Only counts brackets, so that nesting of any depth is walked without recursion. */
function findNestedEnd(text: string, start: number, end: number): number {
  let depth = 0;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const after = findStringEnd(text, at, end);
      at = (after < 0 ? ~after : after) - 1;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  throw invalid('body', 'must be valid JSON');
}

export function nextMember(text: string, valueEnd: number, end: number): number {
  const at = skipBlanks(text, valueEnd, end);
  return text.charCodeAt(at) === COMMA ? skipBlanks(text, at + 1, end) : at;
}
