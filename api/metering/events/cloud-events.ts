/**
 * CloudEvents over HTTP, in three modes: one as JSON (`application/cloudevents+json`), a batch (`application/cloudevents-batch+json`),
 * or attributes as headers `ce-…` and the data as the body (docs/rules/events.md, "CloudEvents"). They are translated into a body of
 * plain events, so all rules for events apply.
 */
import type { Request } from 'express';
import { invalid } from '../../../core/foundation/error.ts';
import { EVENTS_PER_REQUEST_MAX, findKeyFault, tooManyEvents } from '../../../core/metering/event/accept.ts';
import {
  type AttributeFault,
  type CloudEvent,
  fromCloudEvent,
  listExtensions,
} from '../../../core/metering/event/cloud-event.ts';
import { elementSpans, properties, type TextSpan } from '../../../core/metering/event-text.ts';
import { type Body, parseBody, readBody } from '../../http/body-text.ts';
import { ceHeaders } from '../../http/ce-headers.ts';
import { reportIgnoredKeys } from '../../http/ignored-keys.ts';
import type { Context } from '../../http/route.ts';

export const ONE = 'application/cloudevents+json';
export const BATCH = 'application/cloudevents-batch+json';

/** Translates a CloudEvent into a body of POST /events; undefined if the request has none. Throws if the CloudEvent is invalid. */
export function readCloudEventBody(context: Context): Body | undefined {
  const { request } = context;
  if (hasMediaType(request, BATCH)) throw invalid('Content-Type', `${BATCH} is taken at /events/bulk`);
  const event = hasMediaType(request, ONE) ? structured(readBody(context)) : binary(context);
  if (event === undefined) return undefined;
  const translated = 'fault' in event ? event : fromCloudEvent(event);
  if ('fault' in translated) throw invalid(translated.fault.field || 'body', translated.fault.why);
  if (!('fault' in event)) reportIgnoredKeys(listExtensions(event.attributes), context);
  return parseBody(translated.text);
}

/** Body of POST /events/bulk for a batch, with null in place of each faulty event. The key of a fault is the index of its event. */
export type CloudEventBatch = { readonly body: Body; readonly faults: ReadonlyMap<number, AttributeFault> };

export function readCloudEventBatch(context: Context): CloudEventBatch | undefined {
  const { request } = context;
  if (hasMediaType(request, ONE)) throw invalid('Content-Type', `${ONE} is taken at /events`);
  if (!hasMediaType(request, BATCH)) {
    if (Object.keys(ceHeaders(request)).length > 0) throw invalid('body', 'an event in headers is taken at /events');
    return undefined;
  }
  const whole = readBody(context, 'body');
  const events = checkBatch(whole.value);
  const spans = elementSpans(whole.characters);
  const faults = new Map<number, AttributeFault>();
  const ignored = new Set<string>();
  const texts = events.map((value, index) => {
    const event = structuredAt(whole.characters, spans[index]!, value);
    const translated = 'fault' in event ? event : fromCloudEvent(event);
    if ('fault' in translated) faults.set(index, translated.fault);
    if (!('fault' in event)) for (const name of listExtensions(event.attributes)) ignored.add(name);
    return 'fault' in translated ? 'null' : translated.text;
  });
  reportIgnoredKeys([...ignored], context);
  return { body: parseBody(`{"events":[${texts.join(',')}]}`), faults };
}

function checkBatch(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw invalid('body', 'must be a JSON array of CloudEvents');
  if (value.length === 0) throw invalid('body', 'must not be empty');
  if (value.length > EVENTS_PER_REQUEST_MAX) throw tooManyEvents('body', value.length);
  return value;
}

type ParsedCloudEvent = CloudEvent | { readonly fault: AttributeFault };

function structured({ characters, value }: Body): ParsedCloudEvent {
  return structuredAt(characters, { start: 0, end: characters.length }, value);
}

function structuredAt(characters: string, span: TextSpan, value: unknown): ParsedCloudEvent {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { fault: { field: '', why: 'must be a JSON object' } };
  const twice = findKeyFault(characters, span);
  if (twice) return { fault: twice };
  const attributes = value as Record<string, unknown>;
  const at = properties(characters, span.start, span.end).findSpan('data');
  const data = at && { text: characters.slice(at.start, at.end), value: attributes.data };
  return { attributes, data };
}

/** Parses a CloudEvent in headers and body; undefined if the request has no `ce-…` header. */
function binary(context: Context): ParsedCloudEvent | undefined {
  const { request } = context;
  const attributes = ceHeaders(request);
  if (Object.keys(attributes).length === 0) return undefined;
  if ('data' in attributes || 'datacontenttype' in attributes)
    return {
      fault: { field: 'data' in attributes ? 'data' : 'datacontenttype', why: 'is the body, and its Content-Type' },
    };
  if (request.body.length === 0) return { attributes, data: undefined };
  const { characters, value } = readBody(context);
  return { attributes, data: { text: characters.trim(), value } };
}

function hasMediaType(request: Request, type: string): boolean {
  return (request.get('content-type')?.split(';')[0] ?? '').trim().toLowerCase() === type;
}
