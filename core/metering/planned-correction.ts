/**
 * A correction of an event that is not requested yet (docs/rules/events.md, "What a correction would change"). Usage is read
 * with the corrected content in place of the current one, so that every aggregation and every price counts it exactly.
 */
import type { Scope } from '../foundation/scope.ts';
import type { Microseconds } from '../foundation/time/instant.ts';
import type { MeteredEvent } from './contribution.ts';
import type { PropertySource } from './event-text.ts';

/** Content of an event before or after its correction, as meters count it. */
export type CorrectedEvent = MeteredEvent & {
  readonly event_name: string;
  readonly source: string;
  readonly properties: PropertySource;
  /** Length of the properties as text. */
  readonly length: number;
};

export type PlannedCorrection = Scope & {
  readonly event_id: string;
  /** Null for a voided event. */
  readonly before: CorrectedEvent | null;
  /** Null for a void. */
  readonly after: CorrectedEvent | null;
  /** Position of the accepted event in the log, which the correction retains. */
  readonly log_position: { readonly partition: number; readonly offset: number };
};

/** Events that a usage query reads. */
type CountedEvents = Scope & {
  readonly event_name: string;
  /** Null means all customers. */
  readonly external_customer_ids: readonly string[] | null;
};

/** Whether the query reads the event before or after the correction. */
export function isTouched(correction: PlannedCorrection, counted: CountedEvents): boolean {
  if (correction.tenant_id !== counted.tenant_id || correction.environment_id !== counted.environment_id) return false;
  return [correction.before, correction.after].some((content) => content !== null && isCounted(content, counted));
}

function isCounted(
  { event_name, external_customer_id }: CorrectedEvent,
  counted: Pick<CountedEvents, 'event_name' | 'external_customer_ids'>,
): boolean {
  const { external_customer_ids: customers } = counted;
  return event_name === counted.event_name && (customers === null || customers.includes(external_customer_id));
}

type CorrectedRead = Pick<CountedEvents, 'event_name' | 'external_customer_ids'> & {
  readonly ranges: readonly (readonly [start_us: Microseconds, end_us: Microseconds])[];
  readonly sources?: readonly string[] | undefined;
  readonly before: ReadonlyMap<number, bigint>;
};

/** Yields the events of a read as they would be after the correction. */
export async function* correctEvents<Event extends MeteredEvent>(
  events: AsyncIterable<Event> | Iterable<Event>,
  { event_id, after, log_position }: PlannedCorrection,
  read: CorrectedRead,
): AsyncGenerator<Event | CorrectedEvent> {
  for await (const event of events) if (event.event_id !== event_id) yield event;
  if (after === null || !isCounted(after, read)) return;
  if (BigInt(log_position.offset) >= (read.before.get(log_position.partition) ?? 0n)) return;
  const isInRange = read.ranges.some(([start, end]) => after.timestamp_us >= start && after.timestamp_us < end);
  if (isInRange && (read.sources?.includes(after.source) ?? true)) yield after;
}
