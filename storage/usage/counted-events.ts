/** Decides which stored events a usage query counts. */
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import type { LogPosition, RawEvent } from '../events/raw-events.ts';
import type { Snapshot } from './snapshot.ts';
import type { KeyedEvent, MeterUsageQuery } from './usage-query.ts';

/** Offsets up to which the events of a partition are counted. */
export type CountedUntil = { readonly snapshot: Snapshot; readonly stop: ReadonlyMap<number, bigint> | undefined };

/** Event with its position in the log. */
export type LoggedEvent = RawEvent & { readonly log_position: Pick<LogPosition, 'partition' | 'offset'> };

/** Whether a query counts an event, if the meter accepts it. */
export function isInQuery(
  read_plan: CountedUntil & { readonly query: MeterUsageQuery; readonly meter: CompiledMeter },
  event: LoggedEvent,
): boolean {
  const { query, meter } = read_plan;
  const isInRange = event.timestamp_us >= query.start_us && event.timestamp_us < query.end_us;
  const isOfCustomers = query.external_customer_ids?.includes(event.external_customer_id) ?? true;
  const isOfSources = query.only?.sources?.includes(event.source) ?? true;
  return (
    isInRange && isOfCustomers && isOfSources && event.event_name === meter.event_name && isBefore(read_plan)(event)
  );
}

export function isBefore({ snapshot, stop }: CountedUntil): (event: Pick<LoggedEvent, 'log_position'>) => boolean {
  const before = stop ? chooseEarlierOffsets(snapshot.before, stop) : snapshot.before;
  return ({ log_position }) => BigInt(log_position.offset) < (before.get(log_position.partition) ?? 0n);
}

/** Chooses the earlier offsets: a stopped meter counts nothing after its last barrier. */
export function chooseEarlierOffsets(
  before: ReadonlyMap<number, bigint>,
  stop: ReadonlyMap<number, bigint>,
): Map<number, bigint> {
  return new Map(
    [...before].map(([partition, offset]) => {
      const end = stop.get(partition);
      return [partition, end !== undefined && end < offset ? end : offset];
    }),
  );
}

export function chooseKey({ key_of, by_customer }: MeterUsageQuery): (event: KeyedEvent) => string {
  return key_of ?? ((event) => (by_customer ? event.external_customer_id : ''));
}

export function buildEventFilter({ without, ...query }: MeterUsageQuery): ((event: RawEvent) => boolean) | undefined {
  const passes = buildQueryFilter(query);
  if (!without) return passes;
  return (event) => event.event_id !== without.event_id && (passes === undefined || passes(event));
}

function buildQueryFilter({ only, clipped }: MeterUsageQuery): ((event: RawEvent) => boolean) | undefined {
  const passes = only?.passes;
  if (!clipped?.size) return passes && ((event) => passes(event.properties));
  const isThere = ({ external_customer_id, timestamp_us }: RawEvent) =>
    clipped.get(external_customer_id)?.some(([from, to]) => timestamp_us >= from && timestamp_us < to) ?? true;
  return (event) => isThere(event) && (passes === undefined || passes(event.properties));
}
