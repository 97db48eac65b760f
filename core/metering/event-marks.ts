/**
 * Walks once over an event in the JSON text that the producer sent and records only the positions of its known fields and of its
 * first-level properties. Strings are cut out on demand. A slice of fifty thousand events would otherwise give the garbage collector half a
 * million live strings to move.
 */
import { invalid } from '../foundation/error.ts';
import { CLOSE_BRACE, LETTER_N, OPEN_BRACE, QUOTE } from '../foundation/json/characters.ts';
import {
  findStringEnd,
  findValueEnd,
  findValueStart,
  nextMember,
  skipBlanks,
  stringAt,
} from '../foundation/json/text.ts';

/** The known fields, in the order in which their positions are stored. */
export const STRING_FIELDS = [
  'event_id',
  'event_name',
  'external_customer_id',
  'customer_id',
  'source',
  'timestamp',
] as const;
export type StringField = (typeof STRING_FIELDS)[number];

/** Positions of many events or objects, stored one after the other; grows as it is filled. */
export class Marks {
  words: Int32Array;
  used = 0;

  constructor(capacity: number) {
    this.words = new Int32Array(capacity);
  }

  /** Ensures space for `count` more words after `next`. The returned array may be a new one. */
  room(next: number, count: number): Int32Array {
    if (next + count > this.words.length) {
      const grown = new Int32Array(Math.max(next + count, this.words.length * 2));
      grown.set(this.words);
      this.words = grown;
    }
    return this.words;
  }
}

/** Offsets of the parts of an event, relative to its first mark. */
export const EVENT_START = 0;
export const EVENT_END = 1;
const FIRST_FIELD = 2;
export const PROPERTIES_START = FIRST_FIELD + STRING_FIELDS.length * 2;
export const PROPERTIES_END = PROPERTIES_START + 1;
/** Offset of the word that contains the end index of the member marks; they begin at MEMBERS_START. */
export const MEMBERS_END = PROPERTIES_START + 2;
export const MEMBERS_START = PROPERTIES_START + 3;

/** Mark of an absent or null field, and of a blank event id or customer. It is a number, because an Int32Array cannot contain undefined. */
export const ABSENT = -1;

/** Offset of the start of a field, relative to the first mark of the event. The end of the field follows it. */
export function fieldMark(field: StringField): number {
  return FIRST_FIELD + STRING_FIELDS.indexOf(field) * 2;
}

const EVENT_ID = fieldMark('event_id');
const EVENT_NAME = fieldMark('event_name');
const CUSTOMER = fieldMark('external_customer_id');

/**
 * Marks an event and returns the index of its first mark. A field of the wrong type is rejected by name. If a key is
 * repeated, the last value counts.
 */
export function markEvent(marks: Marks, text: string, start: number, end: number): number {
  const first = marks.used;
  let words = marks.room(first, MEMBERS_START);
  words.fill(ABSENT, first, first + MEMBERS_START);
  marks.used = words[first + MEMBERS_END] = first + MEMBERS_START;
  let at = skipBlanks(text, start, end);
  words[first + EVENT_START] = at;
  if (text.charCodeAt(at) !== OPEN_BRACE) throw invalid('event', 'must be a JSON object');
  at = skipBlanks(text, at + 1, end);
  while (at < end && text.charCodeAt(at) !== CLOSE_BRACE) {
    const keyEnd = findStringEnd(text, at, end);
    const field = fieldAt(text, at, keyEnd);
    const value = findValueStart(text, keyEnd, end);
    let valueEnd: number;
    if (field === undefined) valueEnd = findValueEnd(text, value, end);
    else if (field === PROPERTIES_START) {
      valueEnd = markProperties(marks, { text, start: value, end, first });
      words = marks.words;
    } else valueEnd = markString(words, { text, start: value, end, first }, field);
    at = nextMember(text, valueEnd, end);
  }
  if (at >= end) throw invalid('body', 'must be valid JSON');
  words[first + EVENT_END] = at + 1;
  if (isBlank(text, words, first + EVENT_NAME)) throw invalid('event_name', 'is required');
  if (isBlank(text, words, first + EVENT_ID)) words[first + EVENT_ID] = ABSENT;
  if (isBlank(text, words, first + CUSTOMER)) words[first + CUSTOMER] = ABSENT;
  return first;
}

/** Position of a value: its start, the end of the text that may be read, and the index of the event's first mark. */
type Position = { readonly text: string; readonly start: number; readonly end: number; readonly first: number };

function markString(words: Int32Array, { text, start, end, first }: Position, field: number): number {
  const mark = first + field;
  const code = text.charCodeAt(start);
  if (code === LETTER_N) {
    words[mark] = ABSENT;
    words[mark + 1] = ABSENT;
    return findValueEnd(text, start, end);
  }
  if (code !== QUOTE) throw invalid(NAME_BY_MARK[field]!, 'must be a string');
  const after = findStringEnd(text, start, end);
  words[mark] = start;
  words[mark + 1] = after;
  return after < 0 ? ~after : after;
}

function markProperties(marks: Marks, { text, start, end, first: event }: Position): number {
  if (text.charCodeAt(start) === LETTER_N) {
    marks.words[event + PROPERTIES_START] = ABSENT;
    return findValueEnd(text, start, end);
  }
  if (text.charCodeAt(start) !== OPEN_BRACE) throw invalid('properties', 'must be an object');
  // If the event has a second `properties` object, its marks overwrite those of the first.
  marks.used = event + MEMBERS_START;
  const after = markMembers(marks, text, start, end);
  const { words } = marks;
  words[event + PROPERTIES_START] = start;
  words[event + PROPERTIES_END] = after;
  words[event + MEMBERS_END] = marks.used;
  return after;
}

/** Writes four positions per member of the object at `start`: key, end of key, value, end of value. Returns the end of the object. */
export function markMembers(marks: Marks, text: string, start: number, end: number): number {
  let { words, used: next } = marks;
  let at = skipBlanks(text, start, end);
  if (text.charCodeAt(at) !== OPEN_BRACE) throw invalid('properties', 'must be an object');
  at = skipBlanks(text, at + 1, end);
  while (at < end && text.charCodeAt(at) !== CLOSE_BRACE) {
    const keyEnd = findStringEnd(text, at, end);
    const value = findValueStart(text, keyEnd, end);
    const isString = text.charCodeAt(value) === QUOTE;
    const valueEnd = isString ? findStringEnd(text, value, end) : findValueEnd(text, value, end);
    if (next + 4 > words.length) words = marks.room(next, 4);
    words[next] = at;
    words[next + 1] = keyEnd;
    words[next + 2] = value;
    words[next + 3] = valueEnd;
    next += 4;
    at = nextMember(text, valueEnd < 0 ? ~valueEnd : valueEnd, end);
  }
  if (at >= end) throw invalid('properties', 'must be valid JSON');
  marks.used = next;
  return at + 1;
}

/** Cuts out the string at a mark; undefined if the field is absent. */
export function markedString(text: string, words: Int32Array, mark: number): string | undefined {
  const start = words[mark]!;
  return start === ABSENT ? undefined : stringAt(text, start, words[mark + 1]!);
}

/**
 * Whether the string is absent, empty or only whitespace. Most names begin with a printable ASCII character, which is
 * checked first.
 */
function isBlank(text: string, words: Int32Array, mark: number): boolean {
  const start = words[mark]!;
  if (start === ABSENT) return true;
  const code = text.charCodeAt(start + 1);
  if (code > 32 && code < 127 && code !== QUOTE && code !== 92) return false;
  return stringAt(text, start, words[mark + 1]!).trim() === '';
}

/** Returns the mark of the known field that a key names. The length and the first letter of the key leave at most one candidate. */
function fieldAt(text: string, open: number, keyEnd: number): number | undefined {
  if (keyEnd < 0) return MARK_BY_NAME.get(stringAt(text, open, keyEnd));
  const length = keyEnd - open - 2;
  const mark = MARK_BY_SHAPE[toShapeIndex(length, text.charCodeAt(open + 1))]!;
  return mark !== ABSENT && text.startsWith(NAME_BY_MARK[mark]!, open + 1) ? mark : undefined;
}

const MARK_BY_NAME = new Map<string, number>([
  ...STRING_FIELDS.map((field) => [field, fieldMark(field)] as const),
  ['properties', PROPERTIES_START],
]);

/** Index by length and first letter: keys of up to 31 characters that begin with a small letter. No two known fields share an index. */
function toShapeIndex(length: number, first: number): number {
  return length > 31 || first < 97 || first > 122 ? 0 : length * 32 + first - 96;
}
const MARK_BY_SHAPE = new Int32Array(32 * 32).fill(ABSENT);
const NAME_BY_MARK: string[] = [];
for (const [name, mark] of MARK_BY_NAME) {
  MARK_BY_SHAPE[toShapeIndex(name.length, name.charCodeAt(0))] = mark;
  NAME_BY_MARK[mark] = name;
}
