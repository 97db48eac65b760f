/**
 * Events of a committed reservation (docs/rules/reservations.md, "The event"). Their ids are the id of the reservation, so they count once
 * however often they are sent. The meter counts exactly the committed quantity. A meter that counts events gets one event per unit, with
 * numbered ids.
 */
import { Decimal, ZERO } from '../../foundation/decimal.ts';
import { invalid, notAllowed } from '../../foundation/error.ts';
import { formatMs, type Milliseconds } from '../../foundation/time/instant.ts';
import { UsageBucket } from '../../metering/bucket.ts';
import { type CompiledMeter, measure } from '../../metering/compiled-meter.ts';
import { EVENTS_PER_REQUEST_MAX } from '../../metering/event/accept.ts';
import { ContentHash, hashContent } from '../../metering/event/content-hash.ts';
import { parseEventTimestamp } from '../../metering/event/timed.ts';
import { properties as propertiesIn } from '../../metering/event-text.ts';
import { explainMismatch } from '../../metering/match.ts';

export function checkCountsUnits({ definition, aggregation }: CompiledMeter, quantity: Decimal): void {
  const { type } = definition.aggregation;
  if (aggregation.counts_units || quantity.isZero()) return;
  throw invalid('quantity', `units of a meter with ${type} do not add up: 0 asks whether usage is within the limit`);
}

type ReservationProperties = Readonly<Record<string, unknown>> | null;

export function checkCanHold(
  { definition, aggregation }: CompiledMeter,
  quantity: Decimal,
  properties: ReservationProperties,
): void {
  const { type } = definition.aggregation;
  if (aggregation.chain_rule !== 'additive')
    throw invalid('hold', `units of a meter with ${type} cannot be held: they do not add up`);
  if (aggregation.value_kind !== 'none') return;
  checkCount(quantity);
  if (properties) checkSize(JSON.stringify(properties), quantity.toNumber(), 'hold.properties');
}

/** Limit of 8 MiB, so that sending the events takes no noticeable time. */
const EVENTS_BYTES_MAX = 8 * 1024 * 1024;

function checkSize(text: string, event_count: number, field: string): void {
  const bytes = computeEventsBytes({ event_text: text, event_count });
  if (bytes <= EVENTS_BYTES_MAX) return;
  throw invalid(field, `become ${bytes} bytes in ${event_count} events, and may be ${EVENTS_BYTES_MAX} at most`, {
    bytes,
    max: EVENTS_BYTES_MAX,
  });
}

/** Size of all events in bytes, without their ids. */
export function computeEventsBytes({ event_text, event_count }: CommittedEvents): number {
  return event_text === null ? 0 : Buffer.byteLength(event_text) * event_count;
}

function checkCount(quantity: Decimal): void {
  if (!quantity.isInteger()) throw invalid('quantity', 'must be whole: the meter counts events');
  if (quantity.gt(String(EVENTS_PER_REQUEST_MAX)))
    throw invalid('quantity', `must be at most ${EVENTS_PER_REQUEST_MAX}: the meter counts events, and each is sent`);
}

type CommittedUsage = {
  readonly external_customer_id: string;
  readonly quantity: Decimal;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly at: Milliseconds;
  /** Name of the properties in the request, for errors. */
  readonly field?: string;
};

/** JSON text of one event without its id, and the number of events. */
export type CommittedEvents = { readonly event_text: string | null; readonly event_count: number };

export function buildCommittedEvents(meter: CompiledMeter, used: CommittedUsage): CommittedEvents {
  const { quantity } = used;
  if (quantity.isZero()) return { event_text: null, event_count: 0 };
  const countsEvents = meter.aggregation.value_kind === 'none';
  if (countsEvents) checkCount(quantity);
  const values = { ...fillFilterValues(meter), ...used.properties };
  const { field, multiplier, expression } = meter;
  const own = countsEvents || expression || !field ? {} : { [field]: toEventValue(quantity, multiplier) };
  const properties = { ...values, ...own };
  const each = countsEvents ? new Decimal('1') : quantity;
  checkMeasured(meter, properties, { quantity: each, field: used.field ?? 'properties' });
  const event_text = JSON.stringify({
    event_name: meter.event_name,
    external_customer_id: used.external_customer_id,
    timestamp: formatMs(used.at),
    source: 'reservation',
    properties,
  });
  const event_count = countsEvents ? quantity.toNumber() : 1;
  checkSize(event_text, event_count, used.field ?? 'properties');
  return { event_text, event_count };
}

/** Fills in the filters with exactly one allowed value. */
function fillFilterValues({ definition }: CompiledMeter): Record<string, string> {
  const single = definition.filters.filter(({ values }) => values.length === 1);
  return Object.fromEntries(single.map(({ key, values }) => [key, values[0]!]));
}

/** Formats the value of an event as decimal text, because a JSON number is not exact. */
function toEventValue(quantity: Decimal, multiplier: Decimal | undefined): string {
  return (multiplier ? quantity.dividedBy(multiplier) : quantity).toFixed();
}

/** Checks, by the meter's own matching and aggregation, that the counted quantity is the committed quantity. */
function checkMeasured(
  meter: CompiledMeter,
  properties: Record<string, unknown>,
  { quantity, field }: { quantity: Decimal; field: string },
): void {
  const source = propertiesIn(JSON.stringify(properties));
  const refused = explainMismatch(meter, source);
  if (refused)
    throw invalid(`${field}.${refused.key}`, `is ${refused.why}: the meter of the feature would not count the event`, {
      allowed: refused.accepted,
    });
  const event = { event_id: '', external_customer_id: '', timestamp_us: 0, properties: source };
  const contribution = measure(meter, event);
  if (contribution.unusable !== undefined) throw invalid(field, contribution.unusable);
  const bucket = new UsageBucket();
  meter.aggregation.add(bucket, contribution);
  const counted = meter.aggregation.finish(bucket, { start_us: 0, end_us: 1, multiplier: meter.multiplier });
  if (!counted.eq(quantity))
    throw notAllowed(
      `the meter of the feature makes ${counted.toFixed()} of this event, and not ${quantity.toFixed()}`,
      {
        field,
        counted: counted.toFixed(),
      },
    );
}

/** Builds the text of each event, with its id. A repeated call gives identical bytes. */
export function buildEventTexts(id: string, { event_text, event_count }: CommittedEvents): string[] {
  if (event_text === null) return [];
  return Array.from({ length: event_count }, (_, index) =>
    insertEventId(event_text, index === 0 ? id : `${id}:${index + 1}`),
  );
}

function insertEventId(text: string, event_id: string): string {
  return `{"event_id":${JSON.stringify(event_id)},${text.slice(1)}`;
}

type StoredEventContent = { readonly content_crc: number; readonly content_hash: number };

/** Whether the stored event is one of the reservation's events. */
export function isCommitted(
  { id, event_text, event_count }: CommittedEvents & { readonly id: string },
  event: StoredEventContent & { readonly event_id: string },
): boolean {
  const place = event.event_id === id ? 1 : Number(event.event_id.slice(id.length + 1));
  const isNumbered = event.event_id === (place === 1 ? id : `${id}:${place}`);
  if (event_text === null || !isNumbered || !(place >= 1 && place <= event_count)) return false;
  const { crc, hash } = hashEventText(event_text);
  // Events stored before the second hash was introduced are compared by their CRC only.
  return event.content_crc === crc && (event.content_hash === hash || event.content_hash === 0);
}

function hashEventText(event_text: string): ContentHash {
  const { event_name, external_customer_id, source, timestamp, properties } = JSON.parse(event_text);
  return hashContent(new ContentHash(), {
    name: event_name.trim(),
    customer: external_customer_id,
    customer_id: '',
    source,
    time: String(parseEventTimestamp(timestamp)),
    properties: JSON.stringify(properties),
  });
}

export function computeUnitsPerEvent(quantity: Decimal, event_count: number): Decimal {
  return event_count === 0 ? ZERO : quantity.dividedBy(String(event_count));
}
