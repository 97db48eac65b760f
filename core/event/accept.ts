/**
 * What an event must be to be accepted (docs/rules/events.md, "What an event must have"). A bulk body is validated whole
 * (docs/rules/events.md, "A request is checked whole"). The events themselves are not changed: the log gets the bytes that
 * came in.
 */
import { FarthingError, invalid } from '../error.ts';
import { ID_PREFIX } from '../id.ts';
import { properties, type TextSpan } from '../metering/event-text.ts';
import { LAST_INSTANT_US, parseEventTime } from '../time/instant.ts';

export const EVENTS_PER_REQUEST_MAX = 1000;
export const TEXT_MAX = 1024;
const HALF_CHARACTER = /\p{Surrogate}/u;
const NUL = '\0';

/** Why this event cannot be accepted, as `field: reason`; undefined when it can. */
export function findEventFault(event: unknown): { field: string; why: string } | undefined {
  if (typeof event !== 'object' || event === null || Array.isArray(event))
    return { field: '', why: 'must be a JSON object' };
  const { event_id, event_name, external_customer_id, customer_id, timestamp, source, properties } = event as Record<
    string,
    unknown
  >;
  if (typeof event_name !== 'string' || event_name.trim() === '') return { field: 'event_name', why: 'is required' };
  if (typeof external_customer_id !== 'string' || external_customer_id.trim() === '') {
    return { field: 'external_customer_id', why: 'is required' };
  }
  return (
    findTextFault('event_name', event_name) ??
    findTextFault('external_customer_id', external_customer_id) ??
    findTextFault('event_id', event_id) ??
    findTextFault('customer_id', customer_id) ??
    findTextFault('source', source) ??
    findTimestampFault(timestamp) ??
    findPropertiesFault(properties)
  );
}

/**
 * How ids of reservations begin. Until one is committed nobody sends an event under its id: it would be there first, and what is committed
 * count as nothing (docs/rules/reservations.md, "The event").
 */
export const RESERVED_ID = `${ID_PREFIX.reservation}_`;

/** The reservation that an id of an event names: that itself, or one of the events that it becomes. */
export function parseReservationId(event_id: unknown): string | undefined {
  return typeof event_id === 'string' && event_id.startsWith(RESERVED_ID) ? event_id.split(':')[0] : undefined;
}

/** What a text of an event may not be; undefined where it may, or is not there. */
export function findTextFault(field: string, value: unknown): { field: string; why: string } | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') return { field, why: 'must be a string' };
  // Half of a character pair cannot be stored as it is, and two such ids would become one.
  if (HALF_CHARACTER.test(value)) return { field, why: 'must be well-formed Unicode' };
  // No question could name it: Postgres has no text with a NUL.
  if (value.includes(NUL)) return { field, why: 'must not hold a NUL' };
  return value.length > TEXT_MAX ? { field, why: `must not be longer than ${TEXT_MAX} characters` } : undefined;
}

function findTimestampFault(value: unknown): { field: string; why: string } | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') return { field: 'timestamp', why: 'must be an RFC 3339 date-time string' };
  const instant = parseEventTime(value);
  if (instant === 'malformed')
    return { field: 'timestamp', why: 'must be an RFC 3339 date-time such as 2026-01-31T10:00:00Z' };
  if (instant === 'out of range') return { field: 'timestamp', why: 'must lie between the years 1900 and 2254' };
  if (instant === LAST_INSTANT_US)
    return {
      field: 'timestamp',
      why: 'must lie before the last microsecond of 2254: no range that ends there holds it',
    };
  return undefined;
}

function findPropertiesFault(value: unknown): { field: string; why: string } | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) return { field: 'properties', why: 'must be a JSON object' };
  return undefined;
}

/** The key that stands twice in the event at these places of the text: of two names nobody knows which was meant. */
export function findKeyFault(text: string, { start, end }: TextSpan): { field: string; why: string } | undefined {
  const seen = new Set<string>();
  for (const key of properties(text, start, end).keys()) {
    if (seen.has(key)) return { field: key, why: 'stands twice in the event' };
    seen.add(key);
  }
  return undefined;
}

/** The events of a bulk body, or what is wrong with the body as a whole. */
export function parseBulkEvents(body: unknown): unknown[] {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalid('body', 'must be a JSON object');
  const { events } = body as { events?: unknown };
  if (!Array.isArray(events)) throw invalid('events', 'must be an array');
  if (events.length === 0) throw invalid('events', 'must not be empty');
  if (events.length > EVENTS_PER_REQUEST_MAX) throw tooManyEvents('events', events.length);
  return events;
}

export function tooManyEvents(field: string, count: number): FarthingError {
  return invalid(field, `must not hold more than ${EVENTS_PER_REQUEST_MAX} events`, { count });
}

/** The error of a bulk body with faults: names the first field by index and lists them all. */
export function bulkFault(faults: readonly { index: number; field: string; why: string }[]): FarthingError {
  const first = faults[0]!;
  const path = `events[${first.index}]${first.field === '' ? '' : `.${first.field}`}`;
  return new FarthingError('validation_error', `${path}: ${first.why}`, { details: { field: path, faults } });
}
