/**
 * Checks JSON in bytes exactly as RFC 8259 and JSON.parse do. Each `skip` function takes the position of a beginning and
 * returns the position after its end. It returns UNKNOWN for invalid JSON and for nesting deeper than DEPTH_MAX. Nothing
 * is decoded. The bytes must be valid UTF-8, so bytes of 128 and above form whole characters.
 *
 * The input is bytes, because reading a character of a string takes three times as long as reading a byte.
 */
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  DOT,
  LETTER_F,
  LETTER_T,
  LETTER_U,
  MINUS,
  OPEN_BRACE,
  OPEN_BRACKET,
  PLUS,
  QUOTE,
} from './characters.ts';

/**
 * An invalid position. These functions return a position for each byte or two of input. A position or `undefined` would
 * be two kinds of value, while V8 holds a number in a register. Callers check `< 0`, once per call.
 */
export const UNKNOWN = -1;
const DEPTH_MAX = 64;

/** Returns the position of the next byte that is not one of the four white-space characters of JSON, or the length of the bytes. */
export function skipBlanks(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at]! <= 32 && isBlank(bytes[at]!)) at++;
  return at;
}

function isBlank(byte: number): boolean {
  return byte === 32 || byte === 10 || byte === 13 || byte === 9;
}

/** Accepts a value of any kind. */
export function skipValue(bytes: Uint8Array, start: number, depth = 0): number {
  if (start >= bytes.length) return UNKNOWN;
  const first = bytes[start]!;
  if (first === QUOTE) return skipString(bytes, start);
  if (first === MINUS || isDigit(first)) return skipNumber(bytes, start);
  if (first === OPEN_BRACE) return skipObject(bytes, start, depth);
  if (first === OPEN_BRACKET) return skipArray(bytes, start, depth);
  if (first === LETTER_T) return skipWord(bytes, start, TRUE);
  if (first === LETTER_F) return skipWord(bytes, start, FALSE);
  return skipWord(bytes, start, NULL);
}

/** Skips an object. `start` is the position of the opening brace. */
export function skipObject(bytes: Uint8Array, start: number, depth = 0): number {
  if (depth >= DEPTH_MAX) return UNKNOWN;
  let at = skipBlanks(bytes, start + 1);
  if (at < bytes.length && bytes[at] === CLOSE_BRACE) return at + 1;
  while (at < bytes.length && bytes[at] === QUOTE) {
    at = skipString(bytes, at);
    if (at < 0) return UNKNOWN;
    at = skipBlanks(bytes, at);
    if (at >= bytes.length || bytes[at] !== COLON) return UNKNOWN;
    at = skipValue(bytes, skipBlanks(bytes, at + 1), depth + 1);
    if (at < 0) return UNKNOWN;
    at = skipBlanks(bytes, at);
    if (at >= bytes.length) return UNKNOWN;
    const byte = bytes[at]!;
    if (byte === CLOSE_BRACE) return at + 1;
    if (byte !== COMMA) return UNKNOWN;
    at = skipBlanks(bytes, at + 1);
  }
  return UNKNOWN;
}

function skipArray(bytes: Uint8Array, start: number, depth: number): number {
  if (depth >= DEPTH_MAX) return UNKNOWN;
  let at = skipBlanks(bytes, start + 1);
  if (at < bytes.length && bytes[at] === CLOSE_BRACKET) return at + 1;
  for (;;) {
    at = skipValue(bytes, at, depth + 1);
    if (at < 0) return UNKNOWN;
    at = skipBlanks(bytes, at);
    if (at >= bytes.length) return UNKNOWN;
    const byte = bytes[at]!;
    if (byte === CLOSE_BRACKET) return at + 1;
    if (byte !== COMMA) return UNKNOWN;
    at = skipBlanks(bytes, at + 1);
  }
}

/** Skips a string. `open` is the position of the opening quote. */
function skipString(bytes: Uint8Array, open: number): number {
  let at = open + 1;
  while (at < bytes.length) {
    const byte = bytes[at++]!;
    if (byte === QUOTE) return at;
    if (byte < 32) return UNKNOWN;
    if (byte === BACKSLASH) {
      at = skipEscape(bytes, at);
      if (at < 0) return UNKNOWN;
    }
  }
  return UNKNOWN;
}

/** Accepts only a string without escapes: the bytes between its quotes are its value. */
export function skipPlainString(bytes: Uint8Array, open: number): number {
  let at = open + 1;
  while (at < bytes.length) {
    const byte = bytes[at++]!;
    if (byte === QUOTE) return at;
    if (byte < 32 || byte === BACKSLASH) return UNKNOWN;
  }
  return UNKNOWN;
}

/** Skips an escape. `at` is the position after the backslash. */
function skipEscape(bytes: Uint8Array, at: number): number {
  if (at >= bytes.length) return UNKNOWN;
  const letter = bytes[at]!;
  if (letter !== LETTER_U) return SIMPLE_ESCAPES.includes(letter) ? at + 1 : UNKNOWN;
  if (at + 5 > bytes.length) return UNKNOWN;
  for (let digit = at + 1; digit < at + 5; digit++) if (!isHexDigit(bytes[digit]!)) return UNKNOWN;
  return at + 5;
}

/** Character codes of `"` `\` `/` `b` `f` `n` `r` `t`, which may follow a backslash. */
const SIMPLE_ESCAPES: readonly number[] = [34, 92, 47, 98, 102, 110, 114, 116];

/** Skips a number, which has no leading zero, no bare point and no sign but a minus. */
function skipNumber(bytes: Uint8Array, start: number): number {
  let at = byteAt(bytes, start) === MINUS ? start + 1 : start;
  if (byteAt(bytes, at) === 48) at++;
  else at = skipDigits(bytes, at);
  if (at < 0) return UNKNOWN;
  if (byteAt(bytes, at) === DOT) at = skipDigits(bytes, at + 1);
  if (at < 0) return UNKNOWN;
  // 69 and 101 are the codes of E and e.
  if ((byteAt(bytes, at) | 32) !== 101) return at;
  const sign = byteAt(bytes, at + 1);
  return skipDigits(bytes, sign === PLUS || sign === MINUS ? at + 2 : at + 1);
}

/** Requires at least one digit. */
function skipDigits(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length && isDigit(bytes[at]!)) at++;
  return at === start ? UNKNOWN : at;
}

function skipWord(bytes: Uint8Array, start: number, word: readonly number[]): number {
  return hasText(bytes, start, word) ? start + word.length : UNKNOWN;
}

const TRUE = toCodes('true');
const FALSE = toCodes('false');
export const NULL = toCodes('null');

/** Converts a text to its character codes. It must be ASCII. */
export function toCodes(text: string): readonly number[] {
  return Array.from(text, (letter) => letter.charCodeAt(0));
}

/** Whether the bytes have a text at `at`. `codes` are the codes of an ASCII text. */
export function hasText(bytes: Uint8Array, at: number, codes: readonly number[]): boolean {
  if (at + codes.length > bytes.length) return false;
  for (let index = 0; index < codes.length; index++) if (bytes[at + index] !== codes[index]) return false;
  return true;
}

/** Returns 0 after the end; valid JSON contains no byte 0. */
export function byteAt(bytes: Uint8Array, at: number): number {
  return at < bytes.length ? bytes[at]! : 0;
}

export function isDigit(byte: number): boolean {
  return byte >= 48 && byte <= 57;
}

function isHexDigit(byte: number): boolean {
  const lower = byte | 32;
  return isDigit(byte) || (lower >= 97 && lower <= 102);
}
