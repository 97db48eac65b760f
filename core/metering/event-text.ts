/**
 * Reads events where they stand, in the JSON text that the producer sent, because "JSON numbers in event properties keep
 * their exact text" (decisions §5) and JSON.parse would round them. The text is known to be valid JSON. One walk finds
 * the fields of an event and where its first-level properties stand; a property is cut out only when somebody asks for it.
 *
 * Spans are positions in the text given. A body decoded as latin1 has one character per byte, and all of JSON's structure
 * is ASCII, so the spans of such a text are the byte offsets of the body (its strings are then not yet decoded as UTF-8).
 *
 * A slice keeps the text it was cut from in memory: what outlives a batch should keep a copy or a hash.
 */
import { invalid } from '../error.ts';
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  endOfString,
  endOfValue,
  LETTER_F,
  LETTER_N,
  LETTER_T,
  nextMember,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipBlanks,
  startOfValue,
  stringAt,
} from './json-text.ts';

export type Span = { readonly start: number; readonly end: number };

export type EventFields = {
  /** Absent when it was blank: the server makes one (decisions §11). */
  event_id: string | undefined;
  /** "Event names are trimmed of leading and trailing whitespace at ingestion" (specification, Meter). */
  event_name: string;
  external_customer_id: string | undefined;
  customer_id: string | undefined;
  timestamp: string | undefined;
  source: string | undefined;
  properties: Properties | undefined;
  /** Just behind the closing brace: where the next event of an array may be looked for. */
  end: number;
};

/** The fields of the event object in `text`; a field of the wrong type is refused by name. The last of two equal keys wins. */
export function readEvent(text: string, start = 0, end = text.length): EventFields {
  const event: EventFields = {
    event_id: undefined,
    event_name: '',
    external_customer_id: undefined,
    customer_id: undefined,
    timestamp: undefined,
    source: undefined,
    properties: undefined,
    end,
  };
  let at = skipBlanks(text, start, end);
  if (text.charCodeAt(at) !== OPEN_BRACE) throw invalid('event', 'must be a JSON object');
  at = skipBlanks(text, at + 1, end);
  while (at < end && text.charCodeAt(at) !== CLOSE_BRACE) {
    const keyEnd = endOfString(text, at, end);
    const field = fieldAt(text, at, keyEnd);
    const value = startOfValue(text, keyEnd, end);
    const valueEnd =
      field === undefined ? endOfValue(text, value, end) : takeField(event, field, { text, start: value, end });
    at = nextMember(text, valueEnd, end);
  }
  if (at >= end) throw invalid('body', 'must be valid JSON');
  event.end = at + 1;
  event.event_name = event.event_name.trim();
  if (event.event_name === '') throw invalid('event_name', 'is required');
  return event;
}

type Field = (typeof FIELDS)[number];

/** Where a value begins in a text, and where the text that may be read ends. */
type Position = { readonly text: string; readonly start: number; readonly end: number };

/** Keeps the value in its field; the answer is where the value ends. */
function takeField(event: EventFields, field: Field, { text, start, end }: Position): number {
  const first = text.charCodeAt(start);
  if (first === LETTER_N) {
    if (field === 'event_name') event.event_name = '';
    else event[field] = undefined;
    return endOfValue(text, start, end);
  }
  if (field === 'properties') {
    if (first !== OPEN_BRACE) throw invalid('properties', 'must be an object');
    event.properties = new Properties(text, start, end);
    return event.properties.indexed();
  }
  if (first !== QUOTE) throw invalid(field, 'must be a string');
  const after = endOfString(text, start, end);
  const value = stringAt(text, start, after);
  if (field === 'event_id' || field === 'external_customer_id') event[field] = isBlank(value) ? undefined : value;
  else event[field] = value;
  return after < 0 ? ~after : after;
}

/** Which of our fields the key between two quotes names. Its length and first letter leave at most one candidate. */
function fieldAt(text: string, open: number, keyEnd: number): Field | undefined {
  if (keyEnd < 0) {
    const key = stringAt(text, open, keyEnd);
    return FIELDS.find((field) => field === key);
  }
  const candidate = FIELD_BY_SHAPE[shapeOf(keyEnd - open - 2, text.charCodeAt(open + 1))];
  return candidate !== undefined && text.startsWith(candidate, open + 1) ? candidate : undefined;
}

const FIELDS = [
  'event_id',
  'event_name',
  'external_customer_id',
  'customer_id',
  'timestamp',
  'source',
  'properties',
] as const satisfies (keyof EventFields)[];

/** Keys of up to 31 characters that begin with a small letter; no two of our fields have the same shape. */
function shapeOf(length: number, first: number): number {
  return length > 31 || first < 97 || first > 122 ? 0 : length * 32 + first - 96;
}
const FIELD_BY_SHAPE: (Field | undefined)[] = Array.from({ length: 32 * 32 }, () => undefined);
for (const field of FIELDS) FIELD_BY_SHAPE[shapeOf(field.length, field.charCodeAt(0))] = field;

function isBlank(text: string): boolean {
  return text.charCodeAt(0) <= 32 ? text.trim() === '' : text === '';
}

export type PropertyKind = 'string' | 'number' | 'boolean' | 'null' | 'object' | 'array';

/** Strings are decoded; the text of everything else is as it was sent. */
export type Property = { readonly kind: PropertyKind; readonly text: string };

/** Whatever answers for the first-level properties of an event; a Map does too. */
export type PropertySource = { get(key: string): Property | undefined };

/** First-level access to the object in `text`; without one, an object that has nothing. */
export function properties(text: string, start = 0, end = text.length): Properties {
  return new Properties(text, start, end);
}

export class Properties implements PropertySource {
  private readonly text: string;
  private readonly start: number;
  private readonly limit: number;
  /** Four positions per member: key, end of key, value, end of value; they stand in `marks` from `first` to `last`. */
  private marks: Int32Array | undefined;
  private first = 0;
  private last = 0;
  private end = 0;

  constructor(text: string, start: number, limit: number) {
    this.text = text;
    this.start = start;
    this.limit = limit;
  }

  get(key: string): Property | undefined {
    const marks = this.marks ?? this.members();
    for (let mark = this.last - 4; mark >= this.first; mark -= 4) {
      if (isKey(this.text, key, marks[mark]!, marks[mark + 1]!)) {
        return propertyAt(this.text, marks[mark + 2]!, marks[mark + 3]!);
      }
    }
    return undefined;
  }

  /** The first-level keys, as often as they were sent. */
  keys(): string[] {
    const keys: string[] = [];
    const marks = this.marks ?? this.members();
    for (let mark = this.first; mark < this.last; mark += 4)
      keys.push(stringAt(this.text, marks[mark]!, marks[mark + 1]!));
    return keys;
  }

  /** The object as it was sent. */
  json(): string {
    return this.text.slice(skipBlanks(this.text, this.start, this.limit), this.indexed());
  }

  /** Where a value begins and ends; the last of two equal keys wins. */
  spanOf(key: string): Span | undefined {
    const marks = this.marks ?? this.members();
    for (let mark = this.last - 4; mark >= this.first; mark -= 4) {
      if (!isKey(this.text, key, marks[mark]!, marks[mark + 1]!)) continue;
      const end = marks[mark + 3]!;
      return { start: marks[mark + 2]!, end: end < 0 ? ~end : end };
    }
    return undefined;
  }

  /** Walks the object now; the answer is where it ends. */
  indexed(): number {
    if (this.marks === undefined) this.members();
    return this.end;
  }

  private members(): Int32Array {
    const { text, limit } = this;
    let marks = marksPage.length - marksUsed < MARKS_FREE_MIN ? newMarksPage() : marksPage;
    let first = marksUsed;
    let next = first;
    let at = skipBlanks(text, this.start, limit);
    if (text.charCodeAt(at) !== OPEN_BRACE) throw invalid('properties', 'must be an object');
    at = skipBlanks(text, at + 1, limit);
    while (at < limit && text.charCodeAt(at) !== CLOSE_BRACE) {
      const keyEnd = endOfString(text, at, limit);
      const value = startOfValue(text, keyEnd, limit);
      const isString = text.charCodeAt(value) === QUOTE;
      const valueEnd = isString ? endOfString(text, value, limit) : endOfValue(text, value, limit);
      if (next + 4 > marks.length) {
        marks = newMarksPage(marks.subarray(first, next));
        next -= first;
        first = 0;
      }
      marks[next] = at;
      marks[next + 1] = keyEnd;
      marks[next + 2] = value;
      marks[next + 3] = valueEnd;
      next += 4;
      at = nextMember(text, valueEnd < 0 ? ~valueEnd : valueEnd, limit);
    }
    if (at >= limit) throw invalid('properties', 'must be valid JSON');
    this.end = at + 1;
    this.first = first;
    this.last = next;
    this.marks = marks;
    if (marks === marksPage) marksUsed = next;
    return marks;
  }
}

/**
 * The positions of many objects share a page, because an array for each would be half of what an event costs the garbage
 * collector. A page lives as long as one of its objects; an object with too many members for what is left begins a new one.
 */
const MARKS_PER_PAGE = 65_536;
const MARKS_FREE_MIN = 256;
let marksPage = new Int32Array(MARKS_PER_PAGE);
let marksUsed = 0;

function newMarksPage(begun?: Int32Array): Int32Array {
  marksPage = new Int32Array(Math.max(MARKS_PER_PAGE, (begun?.length ?? 0) * 4));
  if (begun) marksPage.set(begun);
  marksUsed = 0;
  return marksPage;
}

/** An event without properties. */
export const NO_PROPERTIES: Properties = new Properties('{}', 0, 2);

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

/** The spans of the elements of the JSON array in `text`. */
export function elementSpans(text: string, start = 0, end = text.length): Span[] {
  const spans: Span[] = [];
  eachElement(text, { start, end }, (at) => {
    const elementEnd = endOfValue(text, at, end);
    spans.push({ start: at, end: elementEnd });
    return elementEnd;
  });
  return spans;
}

/** Goes through the elements of the JSON array; `read` gets where one begins and answers where it ends. */
export function eachElement(text: string, { start, end }: Span, read: (start: number) => number): void {
  let at = skipBlanks(text, start, end);
  if (text.charCodeAt(at) !== OPEN_BRACKET) throw invalid('body', 'must be a JSON array');
  at = skipBlanks(text, at + 1, end);
  while (at < end && text.charCodeAt(at) !== CLOSE_BRACKET) at = nextMember(text, read(at), end);
  if (at >= end) throw invalid('body', 'must be valid JSON');
}

/**
 * The array under `key`, found from both ends without a walk; nothing where that cannot be told. `object` is what
 * JSON.parse made of the text: with one key it has no other member, unless that key stands there again, which then is
 * written as it is or with a \\u escape.
 */
export function onlyArrayUnder(text: string, key: string, object: object): Span | undefined {
  const quoted = `"${key}"`;
  const name = skipBlanks(text, skipBlanks(text, 0, text.length) + 1, text.length);
  if (Object.keys(object).length !== 1 || !text.startsWith(quoted, name)) return undefined;
  const start = startOfValue(text, name + quoted.length, text.length);
  if (text.charCodeAt(start) !== OPEN_BRACKET) return undefined;
  if (text.includes(quoted, start) || text.includes('\\u', start)) return undefined;
  const brace = lastSign(text, text.length);
  return { start, end: lastSign(text, brace) + 1 };
}

function lastSign(text: string, before: number): number {
  let at = before - 1;
  while (at >= 0 && text.charCodeAt(at) <= 32) at--;
  return at;
}

/** Where the value that begins at `start` ends. */
export function valueEnd(text: string, start: number): number {
  return endOfValue(text, start, text.length);
}

/** The spans of the elements of the array under a key of the object in `text`. */
export function elementSpansUnder(text: string, key: string): Span[] {
  const value = properties(text).spanOf(key);
  if (value === undefined) throw invalid(key, 'is required');
  if (text.charCodeAt(value.start) !== OPEN_BRACKET) throw invalid(key, 'must be an array');
  return elementSpans(text, value.start, value.end);
}
