/**
 * First step of an event's life: from the bytes in the log to the fields of the event. What cannot be read is dead-lettered
 * with its bytes and the reason, and takes nobody with it.
 */
import { crc32 } from 'node:zlib';
import { IdentityHasher } from '../../core/event/identity.ts';
import { FarthingError, invalid } from '../../core/error.ts';
import { type EventFields, elementSpans, NO_PROPERTIES, type PropertySource, readEvent, type Span } from '../../core/metering/event-text.ts';
import { parseTimestamp } from '../../core/metering/timestamp.ts';
import { type Scope, scopeKey } from '../../core/scope.ts';
import type { EventOutcome, StoredEvent } from '../../storage/events/tables.ts';
import type { LogRecord } from '../../storage/log/log.ts';

/** An event as read, with its scope as one shared object and its bytes for a conflict. */
export type ReadEvent = StoredEvent & {
  readonly scope: Scope;
  readonly property: PropertySource;
  readonly text: () => string;
};

export type ReadResult = { events: ReadEvent[]; dead: EventOutcome[] };

type Reader = { readonly scope: Scope; readonly hasher: IdentityHasher };

export class EventReader {
  readonly #readers = new Map<string, Reader>();

  read(records: readonly LogRecord[]): ReadResult {
    const result: ReadResult = { events: [], dead: [] };
    for (const record of records) this.#readRecord(record, result);
    return result;
  }

  #readRecord(record: LogRecord, result: ReadResult): void {
    const text = record.body.toString('utf8');
    let spans: Span[];
    try {
      spans = elementSpans(text);
    } catch (error) {
      result.dead.push(deadLetter(record, { position: 0, event_id: '', body: text, error }));
      return;
    }
    const reader = this.#readerOf(record);
    for (let position = 0; position < spans.length; position++) {
      const span = spans[position]!;
      try {
        result.events.push(readOne(record, reader, { text, span, position }));
      } catch (error) {
        const event_id = record.made_ids?.[position] ?? idIn(text.slice(span.start, span.end));
        result.dead.push(deadLetter(record, { position, event_id, body: text.slice(span.start, span.end), error }));
      }
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

function readOne(
  record: LogRecord,
  { scope, hasher }: Reader,
  { text, span, position }: { text: string; span: Span; position: number },
): ReadEvent {
  const fields = readEvent(text, span.start, span.end);
  const event_id = fields.event_id ?? record.made_ids?.[position];
  if (event_id === undefined) throw invalid('event_id', 'is missing and none was made');
  if (fields.external_customer_id === undefined) throw invalid('external_customer_id', 'is required');
  const given = timestampOf(fields.timestamp);
  const properties = fields.properties?.json() ?? '{}';
  hasher.hash(event_id);
  return {
    scope,
    tenant_id: scope.tenant_id,
    environment_id: scope.environment_id,
    event_id,
    event_name: fields.event_name,
    external_customer_id: fields.external_customer_id,
    customer_id: fields.customer_id ?? '',
    source: fields.source ?? '',
    timestamp_us: given ?? record.received_at_us,
    received_at_us: record.received_at_us,
    properties,
    partition: record.partition,
    offset: Number(record.offset),
    position,
    id_high: hasher.high,
    id_low: hasher.low,
    property: fields.properties ?? NO_PROPERTIES,
    content_crc: crc32(`${contentHead(fields, given)}${properties}`),
    text: () => text.slice(span.start, span.end),
  };
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
