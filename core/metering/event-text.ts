/**
 * Reads events in the JSON text that the producer sent, because numbers keep their exact text (docs/rules/events.md, "The
 * bytes are preserved") and JSON.parse would round them. The text must be valid JSON. One pass finds the fields of an event
 * and the positions of its first-level properties; a property is cut out on demand.
 *
 * Spans are positions in the given text. A body decoded as latin1 has one character per byte, and all of JSON's structure
 * is ASCII. The spans of such a text are therefore byte offsets of the body, and its strings are not yet decoded as
 * UTF-8.
 *
 * A slice keeps its whole source text in memory, so data that outlives a batch should be a copy or a hash.
 */
import { invalid } from '../foundation/error.ts';
import {
  CLOSE_BRACKET,
  LETTER_F,
  LETTER_N,
  LETTER_T,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../foundation/json/characters.ts';
import { findValueEnd, nextMember, skipBlanks, stringAt } from '../foundation/json/text.ts';
import {
  EVENT_END,
  fieldMark,
  Marks,
  MEMBERS_END,
  MEMBERS_START,
  markEvent,
  markedString,
  markMembers,
  PROPERTIES_END,
  PROPERTIES_START,
  type StringField,
} from './event-marks.ts';

export type TextSpan = { readonly start: number; readonly end: number };

type EventFields = {
  /** Undefined if the id was blank: the server generates one (docs/rules/identity.md, "Events without an id"). */
  event_id: string | undefined;
  /** Name without leading and trailing white space (docs/rules/events.md, "What an event must have"). */
  event_name: string;
  external_customer_id: string | undefined;
  customer_id: string | undefined;
  timestamp: string | undefined;
  source: string | undefined;
  properties: EventProperties | undefined;
  /** The position after the closing brace, from which the next event of an array can be read. */
  end: number;
};

/** Reads an event. A field of the wrong type is rejected by name. If a key is repeated, the last value counts. */
export function readEvent(text: string, start = 0, end = text.length): EventFields {
  const marks = new Marks(MEMBERS_START + 64);
  const first = markEvent(marks, text, start, end);
  const { words } = marks;
  const field = (name: StringField) => markedString(text, words, first + fieldMark(name));
  return {
    event_id: field('event_id'),
    event_name: field('event_name')!.trim(),
    external_customer_id: field('external_customer_id'),
    customer_id: field('customer_id'),
    timestamp: field('timestamp'),
    source: field('source'),
    properties: toEventProperties(text, words, first),
    end: words[first + EVENT_END]!,
  };
}

/** Returns the properties of a marked event; undefined if it has none. */
export function toEventProperties(text: string, words: Int32Array, event: number): EventProperties | undefined {
  const start = words[event + PROPERTIES_START]!;
  if (start < 0) return undefined;
  const span = { start, end: words[event + PROPERTIES_END]! };
  return new EventProperties(text, span, { words, first: event + MEMBERS_START, last: words[event + MEMBERS_END]! });
}

type PropertyKind = 'string' | 'number' | 'boolean' | 'null' | 'object' | 'array';

/** A property. The text of a string is decoded; every other value has its text as it was sent. */
export type Property = { readonly kind: PropertyKind; readonly text: string };

/** A source of the first-level properties of an event; a Map satisfies it too. */
export type PropertySource = { get(key: string): Property | undefined };

export function properties(text: string, start = 0, end = text.length): EventProperties {
  const marks = new Marks(MEMBERS_AT_FIRST);
  const open = skipBlanks(text, start, end);
  const after = markMembers(marks, text, open, end);
  return new EventProperties(text, { start: open, end: after }, { words: marks.words, first: 0, last: marks.used });
}

const MEMBERS_AT_FIRST = 4 * 16;

/** Indexes of member marks, from `first` up to but not including `last`. */
type Members = { readonly words: Int32Array; readonly first: number; readonly last: number };

export class EventProperties implements PropertySource {
  private readonly text: string;
  private readonly start: number;
  private readonly end: number;
  private readonly words: Int32Array;
  private readonly first: number;
  private readonly last: number;
  /** Marks by key, built on first access; only for an object with more than MANY_MEMBERS members. */
  private marks: Map<string, number> | undefined;
  /** Long strings with escapes by start position, decoded once instead of once per meter. */
  private decoded: Map<number, string> | undefined;

  constructor(text: string, span: TextSpan, members: Members) {
    this.text = text;
    this.start = span.start;
    this.end = span.end;
    this.words = members.words;
    this.first = members.first;
    this.last = members.last;
  }

  get(key: string): Property | undefined {
    const mark = this.findMark(key);
    if (mark < 0) return undefined;
    const start = this.words[mark + 2]!;
    const end = this.words[mark + 3]!;
    return end < 0 && ~end - start > LONG_STRING ? this.decodedAt(start, end) : propertyAt(this.text, start, end);
  }

  private decodedAt(start: number, end: number): Property {
    this.decoded ??= new Map();
    let text = this.decoded.get(start);
    if (text === undefined) this.decoded.set(start, (text = stringAt(this.text, start, end)));
    return { kind: 'string', text };
  }

  /** The first-level keys, including repeated ones. */
  keys(): string[] {
    const keys: string[] = [];
    for (let mark = this.first; mark < this.last; mark += 4)
      keys.push(stringAt(this.text, this.words[mark]!, this.words[mark + 1]!));
    return keys;
  }

  /** JSON text of the object, exactly as it was sent. */
  json(): string {
    return this.text.slice(this.start, this.end);
  }

  /** Finds the value of a key. If the key is repeated, the last value counts. */
  findSpan(key: string): TextSpan | undefined {
    const mark = this.findMark(key);
    if (mark < 0) return undefined;
    const end = this.words[mark + 3]!;
    return { start: this.words[mark + 2]!, end: end < 0 ? ~end : end };
  }

  private findMark(key: string): number {
    const words = this.words;
    if (this.last - this.first > 4 * MANY_MEMBERS) return this.marksByKey().get(key) ?? -1;
    for (let mark = this.last - 4; mark >= this.first; mark -= 4)
      if (isKey(this.text, key, words[mark]!, words[mark + 1]!)) return mark;
    return -1;
  }

  private marksByKey(): Map<string, number> {
    if (this.marks !== undefined) return this.marks;
    this.marks = new Map();
    for (let mark = this.first; mark < this.last; mark += 4)
      this.marks.set(stringAt(this.text, this.words[mark]!, this.words[mark + 1]!), mark);
    return this.marks;
  }
}

/** Up to this number of members a linear search is faster than a map. */
const MANY_MEMBERS = 64;
const LONG_STRING = 256;

export const NO_PROPERTIES: EventProperties = properties('{}');

function isKey(text: string, key: string, open: number, keyEnd: number): boolean {
  if (keyEnd < 0) return stringAt(text, open, keyEnd) === key;
  return keyEnd - open - 2 === key.length && text.startsWith(key, open + 1);
}

function propertyAt(text: string, start: number, end: number): Property {
  switch (text.charCodeAt(start)) {
    case QUOTE:
      return { kind: 'string', text: stringAt(text, start, end) };
    case OPEN_BRACE:
      return { kind: 'object', text: text.slice(start, end) };
    case OPEN_BRACKET:
      return { kind: 'array', text: text.slice(start, end) };
    case LETTER_T:
      return { kind: 'boolean', text: 'true' };
    case LETTER_F:
      return { kind: 'boolean', text: 'false' };
    case LETTER_N:
      return { kind: 'null', text: 'null' };
    default:
      return { kind: 'number', text: text.slice(start, end) };
  }
}

export function elementSpans(text: string, start = 0, end = text.length): TextSpan[] {
  const spans: TextSpan[] = [];
  forEachElement(text, { start, end }, (at) => {
    const elementEnd = findValueEnd(text, at, end);
    spans.push({ start: at, end: elementEnd });
    return elementEnd;
  });
  return spans;
}

/** Calls `read` with the start of each element of the JSON array; `read` returns the end of that element. */
export function forEachElement(text: string, { start, end }: TextSpan, read: (start: number) => number): void {
  let at = skipBlanks(text, start, end);
  if (text.charCodeAt(at) !== OPEN_BRACKET) throw invalid('body', 'must be a JSON array');
  at = skipBlanks(text, at + 1, end);
  while (at < end && text.charCodeAt(at) !== CLOSE_BRACKET) at = nextMember(text, read(at), end);
  if (at >= end) throw invalid('body', 'must be valid JSON');
}

export function valueEnd(text: string, start: number): number {
  return findValueEnd(text, start, text.length);
}

export function elementSpansUnder(text: string, key: string): TextSpan[] {
  const value = properties(text).findSpan(key);
  if (value === undefined) throw invalid(key, 'is required');
  if (text.charCodeAt(value.start) !== OPEN_BRACKET) throw invalid(key, 'must be an array');
  return elementSpans(text, value.start, value.end);
}
