/**
 * First step of an event: from the bytes in the log to the fields of the event. An unreadable event is dead-lettered with its bytes and the
 * reason, and does not affect other events.
 */

import { isAscii } from 'node:buffer';
import { FarthingError, invalid } from '../../core/foundation/error.ts';
import { parseJson } from '../../core/foundation/json/parse.ts';
import { type Scope, scopeKey } from '../../core/foundation/scope.ts';
import { ContentHash, hashContent } from '../../core/metering/event/content-hash.ts';
import { IdentityHasher } from '../../core/metering/event/identity.ts';
import type { EventOutcome } from '../../core/metering/event/outcome.ts';
import { isTimestampSent, parseEventTimestamp } from '../../core/metering/event/timed.ts';
import {
  ABSENT,
  EVENT_END,
  EVENT_START,
  fieldMark,
  Marks,
  MEMBERS_START,
  markEvent,
  markedString,
  PROPERTIES_END,
  PROPERTIES_START,
} from '../../core/metering/event-marks.ts';
import {
  type EventProperties,
  forEachElement,
  NO_PROPERTIES,
  toEventProperties,
  valueEnd,
} from '../../core/metering/event-text.ts';
import type { StoredEvent } from '../../storage/events/tables.ts';
import type { LogRecord } from '../../storage/log/log.ts';
import { checkTexts } from './check-texts.ts';
import { KnownTexts } from './known-texts.ts';

const EVENT_ID = fieldMark('event_id');
const EVENT_NAME = fieldMark('event_name');
const CUSTOMER = fieldMark('external_customer_id');
const CUSTOMER_ID = fieldMark('customer_id');
const SOURCE = fieldMark('source');
const TIMESTAMP = fieldMark('timestamp');

/**
 * A parsed event: an index into the events of its log record. Most of its strings are extracted from the record's text on access, which
 * saves memory, because a slice has thousands of events.
 */
export class ReadEvent implements StoredEvent {
  private readonly record_events: RecordEvents;
  private readonly index: number;
  private readonly mark: number;

  constructor(record_events: RecordEvents, index: number) {
    this.record_events = record_events;
    this.index = index;
    this.mark = record_events.firsts[index]!;
  }

  get event_id(): string {
    return this.record_events.event_ids[this.index] ?? this.string(EVENT_ID)!;
  }
  get event_name(): string {
    return this.record_events.names[this.index]!;
  }
  get external_customer_id(): string {
    return this.record_events.customers[this.index]!;
  }
  get customer_id(): string {
    return this.string(CUSTOMER_ID) ?? '';
  }
  get source(): string {
    return this.record_events.sources[this.index]!;
  }
  get timestamp_us(): number {
    return this.record_events.timestamps_us[this.index]!;
  }
  get id_high(): number {
    return this.record_events.words[this.index * WORDS]!;
  }
  get id_low(): number {
    return this.record_events.words[this.index * WORDS + 1]!;
  }
  get content_crc(): number {
    return this.record_events.words[this.index * WORDS + 2]!;
  }
  get content_hash(): number {
    return this.record_events.words[this.index * WORDS + 3]!;
  }
  /** Index of the event in the array of its record. */
  get position(): number {
    return this.record_events.positions[this.index]!;
  }

  get properties(): EventProperties {
    const { text, marks } = this.record_events;
    return toEventProperties(text, marks.words, this.mark) ?? NO_PROPERTIES;
  }
  /** JSON text of the `properties` object. */
  get properties_json(): string {
    const { text, marks } = this.record_events;
    const start = marks.words[this.mark + PROPERTIES_START]!;
    return start === ABSENT ? '{}' : text.slice(start, marks.words[this.mark + PROPERTIES_END]!);
  }

  /** One shared object for all events of a tenant and environment. */
  get scope(): Scope {
    return this.record_events.scope;
  }
  get tenant_id(): string {
    return this.record_events.scope.tenant_id;
  }
  get environment_id(): string {
    return this.record_events.scope.environment_id;
  }
  get received_at_us(): number {
    return this.record_events.record.received_at_us;
  }
  get partition(): number {
    return this.record_events.record.partition;
  }
  get offset(): number {
    return this.record_events.offset;
  }

  /** Returns the JSON text of the event as received, to be stored for a conflict. */
  text(): string {
    const { text, marks } = this.record_events;
    return text.slice(marks.words[this.mark + EVENT_START]!, marks.words[this.mark + EVENT_END]!);
  }

  private string(field: number): string | undefined {
    return markedString(this.record_events.text, this.record_events.marks.words, this.mark + field);
  }
}

/** The events of one record, column by column. */
class RecordEvents {
  readonly record: LogRecord;
  readonly scope: Scope;
  readonly text: string;
  /** Whether the text is ASCII. Each character is then one byte, so a hash over the characters equals the hash over the bytes. */
  readonly ascii: boolean;
  readonly offset: number;
  readonly marks: Marks;
  /** Index of the first mark of each event. */
  readonly firsts: number[] = [];
  readonly positions: number[] = [];
  readonly names: string[] = [];
  readonly customers: string[] = [];
  readonly sources: string[] = [];
  readonly timestamps_us: number[] = [];
  /** Ids that the service generated; undefined for an event whose id is in the text. */
  readonly event_ids: (string | undefined)[] = [];
  /** Hashes of each event: two words for its id, then two for its content. */
  words: Uint32Array;

  constructor(record: LogRecord, scope: Scope) {
    this.record = record;
    this.scope = scope;
    this.ascii = isAscii(record.body);
    // ASCII bytes need no decoding.
    this.text = record.body.toString(this.ascii ? 'latin1' : 'utf8');
    this.offset = Number(record.offset);
    this.marks = new Marks(record.event_count * MARKS_PER_EVENT);
    this.words = new Uint32Array(record.event_count * WORDS);
  }

  add(event: NewEvent): void {
    const at = (this.firsts.push(event.first) - 1) * WORDS;
    this.positions.push(event.position);
    this.event_ids.push(event.generated_id);
    this.names.push(event.name);
    this.customers.push(event.customer);
    this.sources.push(event.source);
    this.timestamps_us.push(event.sent_timestamp_us ?? this.record.received_at_us);
    if (at + WORDS > this.words.length) this.words = grown(this.words);
    this.words[at] = event.high;
    this.words[at + 1] = event.low;
    this.words[at + 2] = event.crc;
    this.words[at + 3] = event.hash;
  }
}

type NewEvent = {
  first: number;
  position: number;
  generated_id: string | undefined;
  sent_timestamp_us: number | undefined;
  name: string;
  customer: string;
  source: string;
  high: number;
  low: number;
  crc: number;
  hash: number;
};

/** Number of entries in `words` per event. */
const WORDS = 4;

/** Initial number of marks per event, enough for about seven properties; the array grows if there are more. */
const MARKS_PER_EVENT = MEMBERS_START + 4 * 7;

export type ReadResult = { events: ReadEvent[]; dead_letters: EventOutcome[] };

/** State shared by the events of one tenant and environment. */
type ScopedReader = { readonly scope: Scope; readonly hasher: IdentityHasher };

export class EventReader {
  readonly #readers = new Map<string, ScopedReader>();
  readonly #texts = new KnownTexts();
  readonly #hash = new ContentHash();

  read(records: readonly LogRecord[]): ReadResult {
    const result: ReadResult = { events: [], dead_letters: [] };
    for (const record of records) this.#readRecord(record, result);
    return result;
  }

  #readRecord(record: LogRecord, result: ReadResult): void {
    const { scope, hasher } = this.#getReader(record);
    const record_events = new RecordEvents(record, scope);
    const before = { events: result.events.length, dead_letters: result.dead_letters.length };
    try {
      let position = 0;
      forEachElement(record_events.text, { start: 0, end: record_events.text.length }, (start) =>
        this.#readOne(record_events, { hasher, start, position: position++ }, result),
      );
    } catch (error) {
      // The record is no array of events: no event of it counts, and one dead letter stores its whole text.
      result.events.length = before.events;
      result.dead_letters.length = before.dead_letters;
      result.dead_letters.push(buildDeadLetter(record, { position: 0, event_id: '', body: record_events.text, error }));
    }
  }

  /** Reads the event that begins at `start`; returns the index at which it ends. */
  #readOne(
    record_events: RecordEvents,
    at: { hasher: IdentityHasher; start: number; position: number },
    result: ReadResult,
  ): number {
    const { text, record, marks } = record_events;
    const { used } = marks;
    try {
      const first = markEvent(marks, text, at.start, text.length);
      this.#take(record_events, first, at);
      result.events.push(new ReadEvent(record_events, record_events.firsts.length - 1));
      return marks.words[first + EVENT_END]!;
    } catch (error) {
      marks.used = used;
      const end = valueEnd(text, at.start);
      const body = text.slice(at.start, end);
      const event_id = record.generated_ids?.[at.position] ?? idIn(body);
      result.dead_letters.push(buildDeadLetter(record, { position: at.position, event_id, body, error }));
      return end;
    }
  }

  /** Checks a marked event and adds it to the columns. It throws before it adds anything, so an invalid event leaves no partial row. */
  #take(
    record_events: RecordEvents,
    first: number,
    { hasher, position }: { hasher: IdentityHasher; position: number },
  ): void {
    const { text, record } = record_events;
    const { words } = record_events.marks;
    const generated_id = words[first + EVENT_ID]! === ABSENT ? record.generated_ids?.[position] : undefined;
    if (words[first + EVENT_ID]! === ABSENT && generated_id === undefined)
      throw invalid('event_id', 'is missing and none was generated');
    if (words[first + CUSTOMER]! === ABSENT) throw invalid('external_customer_id', 'is required');
    checkTexts(text, words, first);
    const timestamp = markedString(text, words, first + TIMESTAMP) ?? '';
    const sent_timestamp_us = parseEventTimestamp(timestamp);
    const name = this.#texts.known(markedString(text, words, first + EVENT_NAME)!.trim());
    const customer = this.#texts.known(markedString(text, words, first + CUSTOMER)!);
    const source = this.#texts.known(markedString(text, words, first + SOURCE) ?? '');
    const content = {
      name,
      customer,
      source,
      time: sent_timestamp_us !== undefined && isTimestampSent(timestamp) ? String(sent_timestamp_us) : '',
    };
    const { crc, hash } = this.#hashContent(record_events, first, content);
    hashEventId(hasher, { text, words, mark: first + EVENT_ID, generated_id });
    record_events.add({
      first,
      position,
      generated_id,
      sent_timestamp_us,
      name,
      customer,
      source,
      high: hasher.high,
      low: hasher.low,
      crc,
      hash,
    });
  }

  /** Hash that decides whether two events with one id are duplicates or a conflict. It ignores a time that the sender did not send. */
  #hashContent(
    { text, ascii, marks: { words } }: RecordEvents,
    first: number,
    { name, customer, source, time }: { name: string; customer: string; source: string; time: string },
  ): ContentHash {
    const properties = words[first + PROPERTIES_START]!;
    const hash = this.#hash;
    if (!ascii || hasEscapes(words, first)) {
      const customer_id = markedString(text, words, first + CUSTOMER_ID) ?? '';
      const own = properties === ABSENT ? '{}' : text.slice(properties, words[first + PROPERTIES_END]!);
      return hashContent(hash, { name, customer, customer_id, source, time, properties: own });
    }
    hash.begin();
    hash.field(name);
    hash.field(customer);
    if (words[first + CUSTOMER_ID]! === ABSENT) hash.field('');
    else hash.field(text, words[first + CUSTOMER_ID]! + 1, words[first + CUSTOMER_ID + 1]! - 1);
    hash.field(source);
    hash.field(time);
    if (properties === ABSENT) hash.last('{}');
    else hash.last(text, properties, words[first + PROPERTIES_END]!);
    return hash;
  }

  #getReader(record: Scope): ScopedReader {
    const key = scopeKey(record);
    let reader = this.#readers.get(key);
    if (!reader) {
      const scope = { tenant_id: record.tenant_id, environment_id: record.environment_id };
      reader = { scope, hasher: new IdentityHasher(scope) };
      this.#readers.set(key, reader);
    }
    return reader;
  }
}

/** Whether a field of the event has an escape. The end mark of a string with an escape is below ABSENT. */
function hasEscapes(words: Int32Array, first: number): boolean {
  return (
    words[first + EVENT_NAME + 1]! < ABSENT ||
    words[first + CUSTOMER + 1]! < ABSENT ||
    words[first + CUSTOMER_ID + 1]! < ABSENT ||
    words[first + SOURCE + 1]! < ABSENT
  );
}

/** Hashes the id of an event. The text of the batch is hashed in place, unless the service generated the id or it has escapes. */
function hashEventId(
  hasher: IdentityHasher,
  {
    text,
    words,
    mark,
    generated_id,
  }: { text: string; words: Int32Array; mark: number; generated_id: string | undefined },
): void {
  const end = words[mark + 1]!;
  if (generated_id !== undefined) hasher.hash(generated_id);
  else if (end < 0) hasher.hash(markedString(text, words, mark)!);
  else hasher.hashRange(text, words[mark]! + 1, end - 1);
}

function grown(words: Uint32Array): Uint32Array {
  const more = new Uint32Array(Math.max(WORDS, words.length * 2));
  more.set(words);
  return more;
}

function buildDeadLetter(
  record: LogRecord,
  fault: { position: number; event_id: string; body: string; error: unknown },
): EventOutcome {
  return {
    tenant_id: record.tenant_id,
    environment_id: record.environment_id,
    event_id: fault.event_id,
    outcome: 'dead_letter',
    meter_id: '',
    reason: fault.error instanceof FarthingError ? fault.error.message : 'cannot be read',
    received_at_us: record.received_at_us,
    partition: record.partition,
    offset: Number(record.offset),
    position: fault.position,
    body: fault.body,
  };
}

/** Reads the id of an event that cannot be read otherwise, so that the event debugger can find it. */
function idIn(text: string): string {
  try {
    const { event_id } = parseJson(text) as { event_id?: unknown };
    return typeof event_id === 'string' ? event_id : '';
  } catch {
    return '';
  }
}
