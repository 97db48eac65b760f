/**
 * Converts a CloudEvent (version 1.0 of the CNCF's specification) to an event: docs/rules/events.md, "CloudEvents". Its
 * data keep the received bytes, because numbers keep their exact text; the attributes are written as new JSON text.
 */
import { findEventFault } from './accept.ts';

/** A CloudEvent. `data` is JSON text with one character per byte, and its parsed value; undefined if the event has none. */
export type CloudEvent = {
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly data: { readonly text: string; readonly value: unknown } | undefined;
};

export type AttributeFault = { field: string; why: string };

/** Result of the conversion. `text` has one character per byte. */
type CloudEventTranslation = { readonly text: string } | { readonly fault: AttributeFault };

const REQUIRED = ['specversion', 'id', 'source', 'type', 'subject'] as const;
const CLOUD_EVENT_ATTRIBUTES = [...REQUIRED, 'time', 'datacontenttype', 'dataschema', 'data'] as const;

/** The attribute that provides each field of an event. */
const ATTRIBUTE_BY_FIELD: Readonly<Record<string, string>> = {
  event_id: 'id',
  event_name: 'type',
  external_customer_id: 'subject',
  timestamp: 'time',
  source: 'source',
  properties: 'data',
};

export function fromCloudEvent({ attributes, data }: CloudEvent): CloudEventTranslation {
  const fault = findAttributesFault(attributes) ?? findDataFault(data?.value);
  if (fault) return { fault };
  const { id, source, type, subject, time } = attributes as Record<(typeof REQUIRED)[number] | 'time', string>;
  const event = {
    event_id: cloudEventId(source, id),
    event_name: type,
    external_customer_id: subject,
    ...(isSet(time) ? { timestamp: time } : {}),
    source,
  };
  const rejected = findEventFault(event);
  if (rejected) return { fault: named(rejected, source) };
  const fields = characters(JSON.stringify(event)).slice(0, -1);
  return { text: data === undefined || data.value === null ? `${fields}}` : `${fields},"properties":${data.text}}` };
}

/**
 * The event id of a CloudEvent. Its specification makes `source` and `id` together unique, and two sources may both count
 * from 1. A source contains no white space, so no two pairs give one id.
 */
function cloudEventId(source: string, id: string): string {
  return `${source} ${id}`;
}

function findAttributesFault(attributes: Readonly<Record<string, unknown>>): AttributeFault | undefined {
  for (const name of REQUIRED) {
    const value = attributes[name];
    if (!isSet(value)) return { field: name, why: 'is required' };
    if (typeof value !== 'string') return { field: name, why: 'must be a string' };
    if (value.trim() === '') return { field: name, why: 'must not be blank' };
  }
  const { specversion, source, time, datacontenttype } = attributes;
  if (specversion !== '1.0') return { field: 'specversion', why: 'must be 1.0' };
  if (/\s/.test(source as string)) return { field: 'source', why: 'must be a URI reference, which has no blanks' };
  if (time === '') return { field: 'time', why: 'must be an RFC 3339 date-time such as 2026-01-31T10:00:00Z' };
  if (isSet(datacontenttype) && !isJson(datacontenttype))
    return { field: 'datacontenttype', why: 'must be application/json, or end in +json' };
  return findNamesFault(attributes);
}

/** Finds an attribute with a misspelt name. Extension attributes are allowed. */
function findNamesFault(attributes: Readonly<Record<string, unknown>>): AttributeFault | undefined {
  if (isSet(attributes.data_base64))
    return { field: 'data_base64', why: 'is not taken: send the data as a JSON object in data' };
  for (const name of Object.keys(attributes)) {
    if (name !== 'data_base64' && !/^[a-z0-9]+$/.test(name))
      return { field: name, why: 'is no name of an attribute, which has lower-case letters and digits alone' };
    const meant = MEANT.get(name) ?? CLOUD_EVENT_ATTRIBUTES.find((known) => isMisspelt(name, known));
    if (meant !== undefined) return { field: name, why: `is no attribute that has an effect; did you mean ${meant}?` };
  }
  return undefined;
}

/** Maps an event field name without underscores to the attribute that its sender probably means. */
const MEANT = new Map(Object.entries(ATTRIBUTE_BY_FIELD).map(([field, name]) => [field.replaceAll('_', ''), name]));
for (const known of CLOUD_EVENT_ATTRIBUTES) MEANT.delete(known);

/**
 * Whether the name is the known one with its letters in another order, one letter too many or one too few. A misspelt
 * `time` would count the event at another time.
 */
function isMisspelt(name: string, known: string): boolean {
  if (name === known) return false;
  if (name.length === known.length) return [...name].sort().join('') === [...known].sort().join('');
  const [shorter, longer] = name.length < known.length ? [name, known] : [known, name];
  if (longer.length - shorter.length !== 1 || shorter.length < 3) return false;
  return [...longer].some((_letter, at) => longer.slice(0, at) + longer.slice(at + 1) === shorter);
}

/** Lists extension attributes, which have no effect. */
export function listExtensions(attributes: Readonly<Record<string, unknown>>): string[] {
  const known: readonly string[] = CLOUD_EVENT_ATTRIBUTES;
  return Object.keys(attributes).filter((name) => !known.includes(name) && isSet(attributes[name]));
}

function findDataFault(value: unknown): AttributeFault | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) return { field: 'data', why: 'must be a JSON object' };
  return undefined;
}

function named({ field, why }: AttributeFault, source: string): AttributeFault {
  const name = ATTRIBUTE_BY_FIELD[field] ?? field;
  // The event id is the source followed by the id, so the error about its length names the length of the source.
  return name === 'id'
    ? { field: name, why: `${why}, with the source (${source.length}) before it` }
    : { field: name, why };
}

function isJson(value: unknown): boolean {
  const type = typeof value === 'string' ? (value.split(';')[0] ?? '').trim().toLowerCase() : '';
  return type === 'application/json' || type.endsWith('+json');
}

/** Whether an attribute is set; one that is not may be null in JSON. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

const encoder = new TextEncoder();

/** Encodes the text as UTF-8 and returns one character per byte. The raw `data` appended to it has the same form. */
function characters(text: string): string {
  let all = '';
  for (const byte of encoder.encode(text)) all += String.fromCharCode(byte);
  return all;
}
