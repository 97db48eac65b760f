/**
 * Parses JSON text from outside. V8 in Node 24 mistakes an object key that is written with escapes for an earlier key
 * that equals its raw characters: after `{"\\u0":1}` anywhere in the process it reads `{"\u0064ay":1}` as `{"\\u0":1}`
 * (https://github.com/nodejs/node/issues/63785). A text with such a key is therefore parsed here, and each key is decoded
 * separately. JSON.parse alone parses all other texts, which are nearly all.
 */

import { CLOSE_BRACE, CLOSE_BRACKET, COLON, OPEN_BRACE, OPEN_BRACKET } from './characters.ts';
import { findStringEnd, findValueEnd, findValueStart, nextMember, skipBlanks, stringAt } from './text.ts';

/** Throws SyntaxError as JSON.parse does, and RangeError if the value is nested too deeply. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return hasEscapedKey(text) ? read(text, skipBlanks(text, 0, text.length)).value : value;
}

function hasEscapedKey(text: string): boolean {
  if (!text.includes('\\')) return false;
  for (let at = text.indexOf('"'); at >= 0; ) {
    const end = findStringEnd(text, at, text.length);
    const after = end < 0 ? ~end : end;
    if (end < 0 && text.charCodeAt(skipBlanks(text, after, text.length)) === COLON) return true;
    at = text.indexOf('"', after);
  }
  return false;
}

type ParsedJson = { value: unknown; after: number };

function read(text: string, start: number): ParsedJson {
  const first = text.charCodeAt(start);
  if (first === OPEN_BRACKET) return items(text, start);
  if (first === OPEN_BRACE) return members(text, start);
  const after = findValueEnd(text, start, text.length);
  return { value: JSON.parse(text.slice(start, after)), after };
}

function items(text: string, start: number): ParsedJson {
  const value: unknown[] = [];
  let at = skipBlanks(text, start + 1, text.length);
  while (text.charCodeAt(at) !== CLOSE_BRACKET) {
    const item = read(text, at);
    value.push(item.value);
    at = nextMember(text, item.after, text.length);
  }
  return { value, after: at + 1 };
}

function members(text: string, start: number): ParsedJson {
  const value: [string, unknown][] = [];
  let at = skipBlanks(text, start + 1, text.length);
  while (text.charCodeAt(at) !== CLOSE_BRACE) {
    const keyEnd = findStringEnd(text, at, text.length);
    const member = read(text, findValueStart(text, keyEnd, text.length));
    value.push([stringAt(text, at, keyEnd), member.value]);
    at = nextMember(text, member.after, text.length);
  }
  return { value: Object.fromEntries(value), after: at + 1 };
}
