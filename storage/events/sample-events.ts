/**
 * Samples the events of an environment that became counted between two states of the log. One statement answers for all filters. The index
 * of offsets limits it to the new rows.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import { type ClickHouseClient, loadRows } from '../clickhouse/clickhouse.ts';
import { type QueryBounds, runAsSmall } from '../concurrency/query-bounds.ts';
import type { FoundEvent } from './find-events.ts';

/** Events that a listener wants; null selects all. */
export type SampleFilter = { readonly event_name: string | null; readonly external_customer_id: string | null };

export type NewOffsets = { readonly partition: number; readonly from: bigint; readonly to: bigint };

export type EventSample = {
  /** Newest receipt first. */
  readonly events: readonly FoundEvent[];
  /** Number of all events that match the filter. */
  readonly event_count: number;
};

/** Maximum length of the properties of a sampled event. Longer events are counted only. */
const PROPERTIES_LENGTH_MAX = 16_384;

const COLUMNS = `[event_id, event_name, external_customer_id, customer_id, source, properties,
  toString(toUnixTimestamp64Micro(timestamp)), toString(toUnixTimestamp64Micro(received_at)), toString(partition), toString(offset)]`;

type SampledEvent = [
  event_id: string,
  event_name: string,
  external_customer_id: string,
  customer_id: string,
  source: string,
  properties: string,
  timestamp_us: string,
  received_at_us: string,
  partition: string,
  offset: string,
];

type SampleQuery = {
  readonly ranges: readonly NewOffsets[];
  readonly filters: readonly SampleFilter[];
  readonly sample_size: number;
  readonly bounds: QueryBounds;
};

/** Returns one sample for each filter, in their order. */
export async function sampleEvents(
  clickhouse: ClickHouseClient,
  scope: Scope,
  { ranges, filters, sample_size, bounds }: SampleQuery,
): Promise<EventSample[]> {
  const { tenant_id, environment_id } = scope;
  const params: Record<string, unknown> = { tenant_id, environment_id };
  const offsets = ranges.map(({ partition, from, to }, index) => {
    Object.assign(params, { [`partition_${index}`]: partition, [`from_${index}`]: from, [`to_${index}`]: to });
    return `(partition = {partition_${index}:UInt16} and offset >= {from_${index}:UInt64} and offset < {to_${index}:UInt64})`;
  });
  const columns = filters.flatMap((filter, index) => {
    const condition = buildCondition(filter, index, params);
    return [
      `toString(countIf(${condition})) as count_${index}`,
      `groupArraySampleIf(${sample_size})(${COLUMNS}, ${condition} and length(properties) <= ${PROPERTIES_LENGTH_MAX}) as sample_${index}`,
    ];
  });
  const query = `select ${columns.join(', ')} from events
    where tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and (${offsets.join(' or ')})`;
  const [row] = await runAsSmall({ tenant_id: scope.tenant_id, bounds }, () =>
    loadRows<Record<string, unknown>>(clickhouse, 'sample of events', { query, params, signal: bounds.signal }),
  );
  return filters.map((_, index) => ({
    event_count: Number(row![`count_${index}`]),
    events: (row![`sample_${index}`] as SampledEvent[])
      .map(toFoundEvent)
      .sort((a, b) => b.received_at_us - a.received_at_us || b.timestamp_us - a.timestamp_us),
  }));
}

function buildCondition(filter: SampleFilter, index: number, params: Record<string, unknown>): string {
  const conditions = (['event_name', 'external_customer_id'] as const).flatMap((field) => {
    const value = filter[field];
    if (value === null) return [];
    params[`${field}_${index}`] = value;
    return [`${field} = {${field}_${index}:String}`];
  });
  return conditions.length === 0 ? '1' : `(${conditions.join(' and ')})`;
}

function toFoundEvent(row: SampledEvent): FoundEvent {
  const [event_id, event_name, external_customer_id, customer_id, source, properties, ...numbers] = row;
  const [timestamp_us, received_at_us, partition, offset] = numbers.map(Number) as [number, number, number, number];
  const texts = { event_id, event_name, external_customer_id, customer_id, source, properties };
  return { ...texts, timestamp_us, received_at_us, partition, offset };
}
