/**
 * The requirements for an accepted event (docs/rules/events.md, "What an event must have"). A bulk body is validated as a
 * whole (docs/rules/events.md, "A request is checked whole"). The events are not changed: the log gets the bytes that
 * were received.
 */
import { FarthingError, invalid } from '../../foundation/error.ts';
import { ID_PREFIX } from '../../foundation/id.ts';
import { LAST_INSTANT_US, parseEventTime } from '../../foundation/time/instant.ts';
import { properties, type TextSpan } from '../event-text.ts';

export const EVENTS_PER_REQUEST_MAX = 1000;
export const TEXT_MAX = 1024;
const HALF_CHARACTER = /\p{Surrogate}/u;
const NUL = '\0';

/** The first reason to reject the event; undefined if it is valid. */
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
 * Prefix of reservation ids. A sender must not use such an id for an event. An event sent before the commit would be the first with this
 * id, and the committed usage would not count (docs/rules/reservations.md, "The event").
 */
export const RESERVED_ID = `${ID_PREFIX.reservation}_`;

/** The reservation in an event id: the id itself, or the part before ':' in the ids of the events that a reservation becomes. */
export function parseReservationId(event_id: unknown): string | undefined {
  return typeof event_id === 'string' && event_id.startsWith(RESERVED_ID) ? event_id.split(':')[0] : undefined;
}

/** Finds a fault of a text; undefined if it is valid or absent. */
export function findTextFault(field: string, value: unknown): { field: string; why: string } | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') return { field, why: 'must be a string' };
  // Half of a surrogate pair cannot be stored unchanged, and two ids that differ only in it would become one.
  if (HALF_CHARACTER.test(value)) return { field, why: 'must be well-formed Unicode' };
  // Postgres text cannot contain a NUL, so no query could name the value.
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

/** Finds a key that the event at `span` has twice, because it is unknown which of the two values the sender meant. */
export function findKeyFault(text: string, { start, end }: TextSpan): { field: string; why: string } | undefined {
  const seen = new Set<string>();
  for (const key of properties(text, start, end).keys()) {
    if (seen.has(key)) return { field: key, why: 'stands twice in the event' };
    seen.add(key);
  }
  return undefined;
}

/** The events of a bulk body; throws if the body as a whole is invalid. */
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

/** Builds the error of a bulk body: it names the first faulty field by its index and lists all faults. */
export function bulkFault(faults: readonly { index: number; field: string; why: string }[]): FarthingError {
  const first = faults[0]!;
  const path = `events[${first.index}]${first.field === '' ? '' : `.${first.field}`}`;
  return new FarthingError('validation_error', `${path}: ${first.why}`, { details: { field: path, faults } });
}
