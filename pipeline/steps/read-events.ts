/**
 * First step of an event's life: from the bytes in the log to the fields of the event. What cannot be read is dead-lettered
 * with its bytes and the reason, and takes nobody with it.
 */
import { isAscii } from 'node:buffer';
import { crc32 } from 'node:zlib';
import { FarthingError, invalid } from '../../core/error.ts';
import { IdentityHasher } from '../../core/event/identity.ts';
import {
  type EventFields,
  eachElement,
  NO_PROPERTIES,
  type PropertySource,
  readEvent,
  valueEnd,
} from '../../core/metering/event-text.ts';
import { parseTimestamp } from '../../core/metering/timestamp.ts';
import { type Scope, scopeKey } from '../../core/scope.ts';
import type { EventOutcome, StoredEvent } from '../../storage/events/tables.ts';
import type { LogRecord } from '../../storage/log/log.ts';

/** An event as read: its own fields, and the record that it came in. */
export class ReadEvent implements StoredEvent {
  readonly event_id: string;
  readonly event_name: string;
  readonly external_customer_id: string;
  readonly customer_id: string;
  readonly source: string;
  readonly timestamp_us: number;
  /** The JSON text of the object. */
  readonly properties: string;
  readonly property: PropertySource;
  readonly position: number;
  readonly id_high: number;
  readonly id_low: number;
  readonly content_crc: number;
  private readonly batch: Batch;
  private readonly start: number;
  private readonly end: number;

  constructor(fields: EventFields, batch: Batch, { start, position }: { start: number; position: number }) {
    const { record, hasher } = batch;
    const event_id = fields.event_id ?? record.made_ids?.[position];
    if (event_id === undefined) throw invalid('event_id', 'is missing and none was made');
    if (fields.external_customer_id === undefined) throw invalid('external_customer_id', 'is required');
    const given = timestampOf(fields.timestamp);
    hasher.hash(event_id);
    this.event_id = event_id;
    this.event_name = fields.event_name;
    this.external_customer_id = fields.external_customer_id;
    this.customer_id = fields.customer_id ?? '';
    this.source = fields.source ?? '';
    this.timestamp_us = given ?? record.received_at_us;
    this.properties = fields.properties?.json() ?? '{}';
    this.property = fields.properties ?? NO_PROPERTIES;
    this.position = position;
    this.id_high = hasher.high;
    this.id_low = hasher.low;
    this.content_crc = crc32(`${contentHead(fields, given)}${this.properties}`);
    this.batch = batch;
    this.start = start;
    this.end = fields.end;
  }

  /** One shared object for all events of a tenant and environment. */
  get scope(): Scope {
    return this.batch.scope;
  }
  get tenant_id(): string {
    return this.batch.scope.tenant_id;
  }
  get environment_id(): string {
    return this.batch.scope.environment_id;
  }
  get received_at_us(): number {
    return this.batch.record.received_at_us;
  }
  get partition(): number {
    return this.batch.record.partition;
  }
  get offset(): number {
    return this.batch.offset;
  }

  /** The event as it came, for a conflict. */
  text(): string {
    return this.batch.text.slice(this.start, this.end);
  }
}

export type ReadResult = { events: ReadEvent[]; dead: EventOutcome[] };

type Reader = { readonly scope: Scope; readonly hasher: IdentityHasher };

/** What the events of one record share. */
type Batch = Reader & { readonly record: LogRecord; readonly text: string; readonly offset: number };

export class EventReader {
  readonly #readers = new Map<string, Reader>();

  read(records: readonly LogRecord[]): ReadResult {
    const result: ReadResult = { events: [], dead: [] };
    for (const record of records) this.#readRecord(record, result);
    return result;
  }

  #readRecord(record: LogRecord, result: ReadResult): void {
    const text = textOf(record.body);
    const batch: Batch = { ...this.#readerOf(record), record, text, offset: Number(record.offset) };
    const before = { events: result.events.length, dead: result.dead.length };
    try {
      let position = 0;
      eachElement(text, { start: 0, end: text.length }, (start) =>
        readOne(batch, { start, position: position++ }, result),
      );
    } catch (error) {
      // No array of events at all: nothing of it counts, and it is kept whole.
      result.events.length = before.events;
      result.dead.length = before.dead;
      result.dead.push(deadLetter(record, { position: 0, event_id: '', body: text, error }));
    }
  }

  #readerOf(record: Scope): Reader {
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

/** Reads the event that begins at `start`; the answer is where it ends. */
function readOne(batch: Batch, at: { start: number; position: number }, result: ReadResult): number {
  const { text, record } = batch;
  try {
    const fields = readEvent(text, at.start);
    result.events.push(new ReadEvent(fields, batch, at));
    return fields.end;
  } catch (error) {
    const end = valueEnd(text, at.start);
    const body = text.slice(at.start, end);
    const event_id = record.made_ids?.[at.position] ?? idIn(body);
    result.dead.push(deadLetter(record, { position: at.position, event_id, body, error }));
    return end;
  }
}

/** Bytes that are all ASCII are characters already. */
function textOf(body: Buffer): string {
  return isAscii(body) ? body.toString('latin1') : body.toString('utf8');
}

/** What makes two events with one id the same or a conflict; the time of receipt is no part of it. */
function contentHead(fields: EventFields, given: number | undefined): string {
  return `${fields.event_name}\0${fields.external_customer_id}\0${fields.customer_id ?? ''}\0${fields.source ?? ''}\0${given ?? ''}\0`;
}

function timestampOf(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  const instant = parseTimestamp(text);
  if (instant === 'absent') return undefined;
  if (typeof instant === 'string') throw invalid('timestamp', `is ${instant}`);
  return instant;
}

function deadLetter(
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

/** The id of an event that cannot be read otherwise, so that the debugger finds it. */
function idIn(text: string): string {
  try {
    const { event_id } = JSON.parse(text) as { event_id?: unknown };
    return typeof event_id === 'string' ? event_id : '';
  } catch {
    return '';
  }
}
