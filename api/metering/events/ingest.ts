/** POST /events, /events/bulk, /events/raw/bulk: the answer is 202 only after the events are durable in the log. */

import { appendChecked, appendEvents, type IncomingEvent } from '../../../actions/metering/events/append-events.ts';
import { findReservedIds } from '../../../actions/metering/events/reserved-ids.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { fieldPath } from '../../../core/foundation/shaped.ts';
import { bulkFault, findEventFault, findKeyFault, parseBulkEvents } from '../../../core/metering/event/accept.ts';
import { checkBulk, type EventRules } from '../../../core/metering/event/check-body.ts';
import { canHold, findMisspeltKey } from '../../../core/metering/event/raw-keys.ts';
import { hashEventContent, SentContents } from '../../../core/metering/event/sent-contents.ts';
import { addTimestamp } from '../../../core/metering/event/timed.ts';
import { elementSpansUnder, type TextSpan } from '../../../core/metering/event-text.ts';
import { type Body, readBody } from '../../http/body-text.ts';
import { checkKeys, describeUnknownKey, findRejectedKeys, reportIgnoredKeys } from '../../http/ignored-keys.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { BATCH, ONE, readCloudEventBatch, readCloudEventBody } from './cloud-events.ts';
import { getFairShare } from './fair-share.ts';
import { buildEventIdGenerator } from './generated-ids.ts';
import {
  BulkIngestEventAnswer,
  BulkIngestEventRequest,
  BulkIngestRawEventAnswer,
  BulkIngestRawEventRequest,
  CLOUD_EVENT_EXAMPLE,
  CloudEventBatchRequest,
  CloudEventRequest,
  IngestEventAnswer,
  IngestEventRequest,
  IngestQuery,
} from './schema.ts';

type IngestFault = { index: number; field: string; why: string };

export const ingestRoutes: Route[] = [
  route({
    method: 'post',
    path: '/events',
    operation_id: 'ingestEvent',
    summary: 'Ingest one usage event',
    description:
      'Answers after the event is durable; it is counted within about a second. An `event_id` has one effect for the life of the data, so the request may be repeated after a 503 or without an answer. Without an `event_id` one is generated and returned. With an `Idempotency-Key` it is derived from the key and the bytes of the request, so a repeated request has the same id. A CloudEvent is accepted too, as JSON (`application/cloudevents+json`) or in headers (`ce-…`): [CloudEvents](/docs/rules/events.md#cloudevents).',
    tag: 'Events',
    access: 'event:write',
    body: IngestEventRequest,
    also_takes: { [ONE]: { schema: CloudEventRequest, example: CLOUD_EVENT_EXAMPLE } },
    raw_body: true,
    success: 202,
    answer: IngestEventAnswer,
    idempotency: 'same',
    async handle(_input, context) {
      const body = readCloudEventBody(context) ?? readBody(context);
      const event = body.value;
      checkKeys(IngestEventRequest, event, context);
      const span = { start: 0, end: body.bytes.length };
      const [reserved] = await faultsOfReserved([event], context);
      const fault = findEventFault(event) ?? findKeyFault(body.characters, span) ?? reserved?.[1];
      if (fault) throw invalid(fault.field || 'body', fault.why);
      const [event_id] = await append(context, body, {
        events: [{ span, event_id: readEventId(event) }],
        contiguous: true,
        indexes: [0],
      });
      return { message: 'Event accepted for processing', event_id };
    },
  }),
  route({
    method: 'post',
    path: '/events/bulk',
    operation_id: 'ingestEventsBulk',
    summary: 'Ingest 1 to 1,000 usage events',
    description:
      'Checks all events before any is accepted. One fault refuses the request, and the error lists every fault. With `verdicts=true` the valid events are accepted, and the answer has a verdict for each event. A batch of CloudEvents (`application/cloudevents-batch+json`) is accepted too: [CloudEvents](/docs/rules/events.md#cloudevents).',
    tag: 'Events',
    access: 'event:write',
    query: IngestQuery,
    body: BulkIngestEventRequest,
    also_takes: { [BATCH]: { schema: CloudEventBatchRequest, example: [CLOUD_EVENT_EXAMPLE] } },
    raw_body: true,
    success: 202,
    answer: BulkIngestEventAnswer,
    idempotency: 'same',
    async handle({ query }, context) {
      const batch = readCloudEventBatch(context);
      if (!batch && !query.verdicts && (await appendUnchanged(context, 'events')) !== undefined) return ACCEPTED;
      const body = batch?.body ?? readBody(context, 'events');
      const events = parseBulkEvents(body.value);
      const misspelt = batch?.faults ?? faultsOfKeys(body, context);
      const reserved = await faultsOfReserved(events, context);
      const spans = elementSpansUnder(body.characters, 'events');
      const faults = findFaults(
        events,
        (event, index) =>
          misspelt.get(index) ??
          findEventFault(event) ??
          findKeyFault(body.characters, spans[index]!) ??
          reserved.get(index),
      );
      if (faults.length > 0 && !query.verdicts) throw bulkFault(faults);
      if (query.verdicts) faults.push(...findConflicts(body, { events, spans, faults }));
      const ids = await appendValid(context, body, { events, spans, faults });
      return {
        ...ACCEPTED,
        ...(query.verdicts ? { verdicts: showVerdicts(ids, faults) } : {}),
      };
    },
  }),
  route({
    method: 'post',
    path: '/events/raw/bulk',
    operation_id: 'ingestRawEventsBulk',
    summary: 'Ingest up to 1,000 raw events',
    description:
      'Each event must be a JSON object, and may have other keys besides the standard keys. A misspelt standard key (`timestmp`, `eventName`) is refused by name. Other faults are found during processing and become dead letters (`GET /events/dead-letters`).',
    tag: 'Events',
    access: 'event:write',
    body: BulkIngestRawEventRequest,
    raw_body: true,
    success: 202,
    answer: BulkIngestRawEventAnswer,
    idempotency: 'same',
    async handle(_input, context) {
      const batch_size = await appendUnchanged(context, { canHold });
      if (batch_size !== undefined) return { ...ACCEPTED, batch_size };
      const body = readBody(context, 'events');
      const events = parseBulkEvents(body.value);
      checkKeys(BulkIngestRawEventRequest, body.value, context);
      const misspelt = misspeltOfRaw(events, context);
      const reserved = await faultsOfReserved(events, context);
      const faults = findFaults(events, (event, index) =>
        isObject(event) ? (misspelt.get(index) ?? reserved.get(index)) : { field: '', why: 'must be a JSON object' },
      );
      if (faults.length > 0) throw bulkFault(faults);
      await appendValid(context, body, { events, spans: elementSpansUnder(body.characters, 'events'), faults });
      return { ...ACCEPTED, batch_size: events.length };
    },
  }),
];

const ACCEPTED = { message: 'Events accepted for processing' };

/** Appends events that pass the fast check and returns their number; undefined if the full check must decide. */
async function appendUnchanged(context: Context, rules: EventRules): Promise<number | undefined> {
  if (context.clock) return undefined;
  const { body } = context.request;
  const checked = checkBulk(body, rules);
  if (checked === undefined) return undefined;
  const { services, scope, received_at: now } = context;
  admit(context, checked.count);
  await appendChecked(services.log, scope, { body, checked, now, generateId: buildEventIdGenerator(context) });
  return checked.count;
}

/** Unknown keys by the index of the event. An event with a misspelt timestamp would count at another time. */
function faultsOfKeys(body: Body, context: Context): Map<number, Omit<IngestFault, 'index'>> {
  const faults = new Map<number, Omit<IngestFault, 'index'>>();
  for (const key of findRejectedKeys(BulkIngestEventRequest, body.value, context)) {
    const [, index, ...path] = key.path;
    if (typeof index !== 'number') throw invalid(fieldPath(key.path), describeUnknownKey(key));
    if (!faults.has(index)) faults.set(index, { field: fieldPath(path), why: describeUnknownKey(key) });
  }
  return faults;
}

/** Misspelt standard keys of raw events, by index. UNKNOWN_BODY_KEYS decides if they are refused or ignored and reported. */
function misspeltOfRaw(events: readonly unknown[], context: Context): Map<number, Omit<IngestFault, 'index'>> {
  const faults = new Map<number, Omit<IngestFault, 'index'>>();
  for (const [index, event] of events.entries()) {
    const found = isObject(event) ? findMisspeltKey(event) : undefined;
    if (found) faults.set(index, { field: found.key, why: `is no key of an event; did you mean ${found.meant}?` });
  }
  if (context.services.config.UNKNOWN_BODY_KEYS === 'refuse') return faults;
  reportIgnoredKeys(
    [...faults].map(([index, { field }]) => `events[${index}].${field}`),
    context,
  );
  return new Map();
}

/** Faults of events that have the id of an uncommitted reservation, by the index of the event. */
function faultsOfReserved(events: readonly unknown[], { services, scope }: Context) {
  const ids = events.map((event) => (isObject(event) ? event['event_id'] : undefined));
  return findReservedIds(services.postgres, scope, ids);
}

type IngestCheck = (event: unknown, index: number) => Omit<IngestFault, 'index'> | undefined;

function findFaults(events: unknown[], check: IngestCheck): IngestFault[] {
  const faults: IngestFault[] = [];
  for (let index = 0; index < events.length; index++) {
    const fault = check(events[index], index);
    if (fault) faults.push({ index, ...fault });
  }
  return faults;
}

/** Events without another fault that repeat the id of an earlier event of the request with other content. */
function findConflicts(
  { characters }: Body,
  { events, spans, faults }: { events: unknown[]; spans: TextSpan[]; faults: readonly IngestFault[] },
): IngestFault[] {
  const faulty = new Set(faults.map(({ index }) => index));
  const contents = new SentContents();
  return events.flatMap((event, index) => {
    const event_id = faulty.has(index) ? undefined : readEventId(event);
    if (event_id === undefined) return [];
    const { start, end } = spans[index]!;
    const text = Buffer.from(characters.slice(start, end), 'latin1').toString();
    if (contents.add(event_id, hashEventContent(text))) return [];
    return { index, field: 'event_id', why: 'an earlier event of this request has this id and other content' };
  });
}

/** Appends the events without a fault and returns the ids by index, null for refused events. */
async function appendValid(
  context: Context,
  body: Body,
  { events, spans, faults }: { events: unknown[]; spans: TextSpan[]; faults: IngestFault[] },
): Promise<(string | null)[]> {
  const refused = new Set(faults.map((fault) => fault.index));
  const valid: IncomingEvent[] = [];
  const indexes: number[] = [];
  for (let index = 0; index < events.length; index++) {
    if (refused.has(index)) continue;
    valid.push({ span: spans[index]!, event_id: readEventId(events[index]) });
    indexes.push(index);
  }
  const appended = { events: valid, contiguous: faults.length === 0, indexes };
  const ids = valid.length === 0 ? [] : await append(context, body, appended);
  let next = 0;
  return events.map((_event, index) => (refused.has(index) ? null : ids[next++]!));
}

/** Appends events. `indexes`: index of each event in the request. */
async function append(
  context: Context,
  body: Body,
  { indexes, ...incoming }: { events: IncomingEvent[]; contiguous: boolean; indexes: number[] },
): Promise<string[]> {
  admit(context, incoming.events.length);
  const { services, scope, received_at: now, clock } = context;
  const whole = clock ? timed(body, incoming.events, clock.now) : { body: body.bytes, ...incoming };
  const generateId = buildEventIdGenerator(context);
  return appendEvents(services.log, scope, {
    ...whole,
    now,
    generateId: generateId && ((index) => generateId(indexes[index]!)),
  });
}

/**
 * Adds the missing timestamps. If the environment has its own clock, an event without a timestamp gets the time of that clock, not of its
 * receipt.
 */
function timed({ characters }: Body, events: readonly IncomingEvent[], now: Date) {
  let text = '';
  const moved = events.map(({ span, event_id }) => {
    const start = text === '' ? 0 : text.length + 1;
    text += (start === 0 ? '' : ',') + addTimestamp(characters, span, now.getTime());
    return { span: { start, end: text.length }, event_id };
  });
  return { body: Buffer.from(text, 'latin1'), events: moved, contiguous: true };
}

function admit({ request, services, scope, received_at }: Context, events: number): void {
  getFairShare(services).admit(scope, { events, bytes: request.body.length }, received_at.getTime());
}

/** Reads the id that the client sent; undefined if it is absent or blank, so that one is generated. */
function readEventId(event: unknown): string | undefined {
  const { event_id } = event as { event_id?: unknown };
  return typeof event_id === 'string' && event_id.trim() !== '' ? event_id : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function showVerdicts(ids: readonly (string | null)[], faults: readonly IngestFault[]) {
  const byIndex = new Map(faults.map((fault) => [fault.index, fault]));
  return ids.map((event_id, index) => {
    const fault = byIndex.get(index);
    return {
      index,
      event_id,
      verdict: fault ? 'refused' : 'accepted',
      field: fault?.field ?? null,
      message: fault?.why ?? null,
    };
  });
}
