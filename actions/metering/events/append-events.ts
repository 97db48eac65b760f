/**
 * Accepts events: each is appended to the partition of its identity, as the received bytes. The promise resolves when all of
 * them are durable in the log (docs/rules/events.md, "Accepted is durable").
 */

import type { Scope } from '../../../core/foundation/scope.ts';
import { toUs } from '../../../core/foundation/time/instant.ts';
import { EVENTS_PER_REQUEST_MAX } from '../../../core/metering/event/accept.ts';
import { type CheckedEvents, eventSpan, idSpan } from '../../../core/metering/event/check-body.ts';
import { IdentityHasher, toPartition, toShard } from '../../../core/metering/event/identity.ts';
import type { TextSpan } from '../../../core/metering/event-text.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { EventLog, LogEntry } from '../../../storage/log/log.ts';

/** One event of a body: its byte span, and its id if the producer gave one. */
export type IncomingEvent = { span: TextSpan; event_id: string | undefined };

/** Generates the id of an event without one, from its index in the batch. */
export type GenerateId = (index: number) => string;

type IncomingEvents = {
  body: Buffer;
  events: readonly IncomingEvent[];
  contiguous: boolean;
  now: Date;
  generateId?: GenerateId;
};

/** Joins separate events to one body. */
export function toOneBody(
  each: readonly { readonly bytes: Buffer; readonly event_id: string | undefined }[],
): Pick<IncomingEvents, 'body' | 'events' | 'contiguous'> {
  let end = -1;
  const events = each.map(({ bytes, event_id }) => {
    const start = end + 1;
    end = start + bytes.length;
    return { span: { start, end }, event_id };
  });
  const body = Buffer.concat(each.flatMap(({ bytes }, index) => (index === 0 ? [bytes] : [COMMA, bytes])));
  return { body, events, contiguous: true };
}

const BODY_BYTES_MAX = 4 * 1_048_576;

/** Splits events into bodies of 1,000 events or 4 MiB, because a record of the log has a maximum size. */
export function* splitIntoBodies<Event extends { readonly bytes: Buffer }>(
  events: readonly Event[],
): Generator<Event[]> {
  let body: Event[] = [];
  let length = 0;
  for (const event of events) {
    if (body.length === EVENTS_PER_REQUEST_MAX || (body.length > 0 && length + event.bytes.length > BODY_BYTES_MAX)) {
      yield body;
      body = [];
      length = 0;
    }
    body.push(event);
    length += event.bytes.length;
  }
  if (body.length > 0) yield body;
}

/** Appends events and returns their ids in order, including generated ones. `contiguous`: only commas separate the events. */
export async function appendEvents(log: EventLog, scope: Scope, incoming: IncomingEvents): Promise<string[]> {
  const appended = await appendEventsWithPositions(log, scope, incoming);
  return appended.map(({ event_id }) => event_id);
}

/** Log position of an event: usage that is read up to a later offset contains it. */
export type AppendedEvent = { readonly event_id: string; readonly partition: number; readonly offset: bigint };

/** Appends events and returns their log positions. */
export async function appendEventsWithPositions(
  log: EventLog,
  scope: Scope,
  incoming: IncomingEvents,
): Promise<AppendedEvent[]> {
  const { body, events, now, generateId = () => newId('event', now.getTime()) } = incoming;
  const hasher = new IdentityHasher(scope);
  const ids: { event_id: string; partition: number }[] = new Array(events.length);
  const parts = new Map<number, { spans: TextSpan[]; generated_ids: Record<number, string> | null }>();
  for (let index = 0; index < events.length; index++) {
    const event = events[index]!;
    const id = event.event_id ?? generateId(index);
    const partition = computePartition(hasher, id, log.partition_count);
    ids[index] = { event_id: id, partition };
    let part = parts.get(partition);
    if (!part) parts.set(partition, (part = { spans: [], generated_ids: null }));
    if (event.event_id === undefined) {
      part.generated_ids ??= {};
      part.generated_ids[part.spans.length] = id;
    }
    part.spans.push(event.span);
  }
  const entries: LogEntry[] = [...parts].map(([partition, part]) => ({
    ...scope,
    partition,
    kind: 'events',
    received_at_us: toUs(now.getTime()),
    generated_ids: part.generated_ids,
    event_count: part.spans.length,
    body: joinEvents(body, part.spans, incoming.contiguous && parts.size === 1),
  }));
  const offsets = await log.append(entries);
  const offsetByPartition = new Map(entries.map(({ partition }, index) => [partition, offsets[index]!]));
  return ids.map((one) => ({ ...one, offset: offsetByPartition.get(one.partition)! }));
}

/** Appends a request body that is already validated. Its ids are read only if the log has several partitions. */
export async function appendChecked(
  log: EventLog,
  scope: Scope,
  incoming: { body: Buffer; checked: CheckedEvents; now: Date; generateId?: GenerateId },
): Promise<void> {
  const { body, checked, now, generateId = () => newId('event', now.getTime()) } = incoming;
  if (log.partition_count > 1) {
    await appendEvents(log, scope, {
      body,
      events: listCheckedEvents(body, checked),
      contiguous: true,
      now,
      generateId,
    });
    return;
  }
  let generated_ids: Record<number, string> | null = null;
  for (let index = 0; index < checked.count; index++) {
    if (idSpan(checked, index).end === 0) (generated_ids ??= {})[index] = generateId(index);
  }
  await log.append([
    {
      ...scope,
      partition: 0,
      kind: 'events',
      received_at_us: toUs(now.getTime()),
      generated_ids,
      event_count: checked.count,
      body: body.subarray(checked.start, checked.end),
    },
  ]);
}

function listCheckedEvents(body: Buffer, checked: CheckedEvents): IncomingEvent[] {
  return Array.from({ length: checked.count }, (_, index) => {
    const id = idSpan(checked, index);
    return {
      span: eventSpan(checked, index),
      event_id: id.end === 0 ? undefined : body.toString('utf8', id.start, id.end),
    };
  });
}

function computePartition(hasher: IdentityHasher, eventId: string, partitionCount: number): number {
  if (partitionCount === 1) return 0;
  hasher.hash(eventId);
  return toPartition(toShard(hasher.high), partitionCount);
}

const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');

/** Builds one JSON array. If all events go to one partition, it is the unchanged section of the body. */
function joinEvents(body: Buffer, spans: readonly TextSpan[], contiguous: boolean): Buffer {
  if (contiguous) {
    return Buffer.concat([OPEN, body.subarray(spans[0]!.start, spans.at(-1)!.end), CLOSE]);
  }
  const pieces: Buffer[] = [OPEN];
  for (const [index, span] of spans.entries()) {
    if (index > 0) pieces.push(COMMA);
    pieces.push(body.subarray(span.start, span.end));
  }
  pieces.push(CLOSE);
  return Buffer.concat(pieces);
}
