/** Reads raw events in bulk, one by one: for back-fills, unaligned edges, queries on free properties, and audits. */

import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import type { MeteredEvent } from '../../core/metering/contribution.ts';
import { properties as propertiesIn } from '../../core/metering/event-text.ts';
import { type ClickHouseClient, SMALL_ANSWER, streamRows, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { buildRangeConditions, type CustomerRange } from './customer-ranges.ts';
import { toMonthNumber } from './tables.ts';

export type RawEvent = MeteredEvent & {
  readonly source: string;
  readonly event_name: string;
  /** Length of the properties as text. */
  readonly length: number;
};

/** Position of an event in the log, and its time of receipt. */
export type LogPosition = {
  readonly received_at_us: Microseconds;
  readonly partition: number;
  readonly offset: number;
  readonly position: number;
};

export type PositionedRawEvent = RawEvent & { readonly log_position: LogPosition };

/** Events of customers of one environment, regardless of their position in the log. */
type EventsOfCustomers = Scope & {
  readonly event_names: readonly string[];
  readonly external_customer_ids: readonly string[];
  readonly ranges: readonly (readonly [number, number])[];
  readonly has_corrections: boolean;
};

/** Events with one name that a customer sent on a UTC day, as days since 1970. */
export type CustomerDay = { readonly event_name: string; readonly external_customer_id: string; readonly day: number };

export type RawEventsQuery = Scope & {
  readonly event_name: string;
  readonly external_customer_ids?: readonly string[];
  /** Half-open ranges of microseconds; absent: all times. */
  readonly ranges?: readonly (readonly [number, number])[];
  readonly sources?: readonly string[];
  /** Absent: all customers. */
  readonly range?: CustomerRange;
  /** Offsets by partition before which the events must lie; partitions that are not listed are excluded. */
  readonly before: ReadonlyMap<number, bigint>;
  /** False if no event of the environment was corrected: the statement is then planned in half the time. Default: true. */
  readonly has_corrections?: boolean;
  /** Aborts the statement. */
  readonly signal?: AbortSignal | undefined;
};

/** Streams the events in the order of the table; throws on failure. */
export async function* streamRawEvents(clickhouse: ClickHouseClient, wanted: RawEventsQuery): AsyncGenerator<RawEvent> {
  const { sql, params } = buildRawEventsStatement(wanted);
  for await (const rows of streamed<RawContentRow>(clickhouse, `select ${CONTENT} ${sql}`, {
    params,
    signal: wanted.signal,
  }))
    for (const row of rows) yield toRawEvent(wanted.event_name, row);
}

/** Streams the events with their positions in the log. */
export async function* streamPositionedEvents(
  clickhouse: ClickHouseClient,
  wanted: RawEventsQuery,
): AsyncGenerator<PositionedRawEvent> {
  const { sql, params } = buildRawEventsStatement(wanted);
  const position_columns = 'toUnixTimestamp64Micro(received_at), partition, event_offset, event_position';
  for await (const rows of streamed<RawPositionedRow>(clickhouse, `select ${CONTENT}, ${position_columns} ${sql}`, {
    params,
  })) {
    for (const row of rows) {
      const [, , , , , received_at_us, partition, offset, position] = row;
      yield { ...toRawEvent(wanted.event_name, row), log_position: { received_at_us, partition, offset, position } };
    }
  }
}

/** The events of some customer-days, whatever their names, in one statement and in the order of the table. */
export async function* streamCustomerDayEvents(
  clickhouse: ClickHouseClient,
  { customer_days, ...wanted }: Scope & Pick<RawEventsQuery, 'before'> & { customer_days: readonly CustomerDay[] },
): AsyncGenerator<RawEvent> {
  const event_names = [...new Set(customer_days.map(({ event_name }) => event_name))];
  const { sql, params } = buildRawEventsStatement({ ...wanted, event_names, customer_days });
  const query = `select ${CONTENT}, event_name ${sql}`;
  for await (const rows of streamed<[...RawContentRow, event_name: string]>(clickhouse, query, { params }))
    for (const row of rows) yield toRawEvent(row[5], row.slice(0, 5) as RawContentRow);
}

/** Loads events in no order, for batches of several callers; null if there are too many. */
export async function loadFewEvents(
  clickhouse: ClickHouseClient,
  { event_names, ...wanted }: EventsOfCustomers,
): Promise<PositionedRawEvent[] | null> {
  const { sql, params } = buildRawEventsStatement({ ...wanted, event_names, before: null });
  const position_columns = 'toUnixTimestamp64Micro(received_at), partition, event_offset, event_position';
  const query = `select ${CONTENT}, ${position_columns}, event_name ${sql} limit {limit:UInt32}`;
  const request = { query, query_params: { ...params, limit: FEW_EVENTS + 1 }, settings: SMALL_ANSWER };
  const events: PositionedRawEvent[] = [];
  let length = 0;
  try {
    for await (const rows of streamRows<[...RawPositionedRow, event_name: string]>(clickhouse, request)) {
      for (const row of rows) {
        const [, , , , , received_at_us, partition, offset, position, event_name] = row;
        const positioned = row.slice(0, -1) as RawPositionedRow;
        const event = toRawEvent(event_name, positioned);
        events.push({ ...event, log_position: { received_at_us, partition, offset, position } });
        length += event.length;
      }
      if (events.length > FEW_EVENTS || length > FEW_EVENTS_LENGTH) return null;
    }
  } catch (error) {
    throw toClickHouseFailure('raw events', error);
  }
  return events;
}

const FEW_EVENTS = 20_000;
/** Length of all their properties. */
const FEW_EVENTS_LENGTH = 4_000_000;

const CONTENT = 'external_customer_id, event_id, toUnixTimestamp64Micro(timestamp) as t, source, properties';
type RawContentRow = [
  customer: string,
  event_id: string,
  timestamp_us: Microseconds,
  source: string,
  properties: string,
];
type RawPositionedRow = [
  ...RawContentRow,
  received_at_us: Microseconds,
  partition: number,
  offset: number,
  position: number,
];

function toRawEvent(event_name: string, row: RawContentRow | RawPositionedRow): RawEvent {
  const [external_customer_id, event_id, timestamp_us, source, text] = row;
  const { length } = text;
  return { event_id, event_name, external_customer_id, timestamp_us, source, properties: propertiesIn(text), length };
}

async function* streamed<Row>(
  clickhouse: ClickHouseClient,
  query: string,
  { params, signal }: { params: Record<string, unknown>; signal?: AbortSignal | undefined },
): AsyncGenerator<Row[]> {
  try {
    const request = { query, query_params: params, ...(signal ? { abort_signal: signal } : {}) };
    yield* streamRows<Row>(clickhouse, request);
  } catch (error) {
    throw toClickHouseFailure('raw events', error);
  }
}

/** A UTC day, as days since 1970, and its number of events. */
export type DayOfEvents = { readonly day: number; readonly events: number };

/** Lists the UTC days with wanted events, in order. */
export async function listRawEventDays(clickhouse: ClickHouseClient, wanted: RawEventsQuery): Promise<DayOfEvents[]> {
  const { sql, params } = buildRawEventsStatement(wanted);
  try {
    const answer = await clickhouse.query({
      query: `select toInt32(toDate32(timestamp)) as day, toString(count()) ${sql} group by day order by day`,
      query_params: params,
      format: 'JSONCompactEachRow',
    });
    return (await answer.json<[number, string]>()).map(([day, events]) => ({ day, events: Number(events) }));
  } catch (error) {
    throw toClickHouseFailure('days of raw events', error);
  }
}

/** Counts the wanted events in the offset ranges `doubts`, from `from` to before `to`; `before` is ignored. */
export async function countRawEvents(
  clickhouse: ClickHouseClient,
  wanted: RawEventsQuery & { doubts: readonly { partition: number; from: bigint; to: bigint }[] },
): Promise<number> {
  const offsets = wanted.doubts.map(
    (doubt) => `(partition = ${doubt.partition} and event_offset >= ${doubt.from} and event_offset < ${doubt.to})`,
  );
  const { sql, params } = buildRawEventsStatement({
    ...wanted,
    before: new Map(wanted.doubts.map((doubt) => [doubt.partition, doubt.to])),
  });
  try {
    const answer = await clickhouse.query({
      query: `select count() as n ${sql} where ${offsets.join(' or ') || '0'}`,
      query_params: params,
      format: 'JSONCompactEachRow',
    });
    const [row] = await answer.json<[string]>();
    return Number(row![0]);
  } catch (error) {
    throw toClickHouseFailure('raw events in doubt', error);
  }
}

/**
 * Selects the current events: replacements instead of corrected events (storage/events/corrections.ts). `before` applies to the event's
 * own partition and offset, because the correction itself may be on a partition that was added later.
 */
function buildRawEventsStatement(wanted: RawStatementQuery): { sql: string; params: Record<string, unknown> } {
  const scope = 'tenant_id = {tenant_id:String} and environment_id = {environment_id:String}';
  const conditions = [scope, 'event_name in {event_names:Array(String)}'];
  const params: Record<string, unknown> = {
    tenant_id: wanted.tenant_id,
    environment_id: wanted.environment_id,
    event_names: wanted.event_names ?? [wanted.event_name],
  };
  if (wanted.external_customer_ids) {
    conditions.push('external_customer_id in {customers:Array(String)}');
    params['customers'] = wanted.external_customer_ids;
  }
  if (wanted.sources) {
    conditions.push('source in {sources:Array(String)}');
    params['sources'] = wanted.sources;
  }
  if (wanted.range) conditions.push(...buildRangeConditions(wanted.range, params));
  if (wanted.ranges) conditions.push(rangesCondition(wanted.ranges, params));
  if (wanted.customer_days) conditions.push(...customerDaysConditions(wanted.customer_days, params));
  const beforeCondition = wanted.before === null ? () => '1' : buildBeforeCondition(wanted.before, params);
  const columns = 'external_customer_id, event_id, event_name, timestamp, source, properties, received_at';
  const wanted_rows = conditions.join(' and ');
  const as_sent = `
      select ${columns}, partition, offset as event_offset, position as event_position
        from events where ${wanted_rows} and ${beforeCondition('partition', 'offset')}`;
  if (wanted.has_corrections === false) return { params, sql: `from (${as_sent})` };
  return {
    params,
    sql: `from (${as_sent}
         and event_id not in (select event_id from event_corrections where ${scope})
      union all
      select ${columns}, event_partition as partition, event_offset, event_position
        from event_corrections where ${wanted_rows} and ${beforeCondition('event_partition', 'event_offset')}
         and action = 'replace'
         and (event_id, sequence) in (select event_id, max(sequence) from event_corrections where ${scope} group by event_id)
       limit 1 by event_id)`,
  };
}

type RawStatementQuery =
  | (RawEventsQuery & { readonly event_names?: undefined; readonly customer_days?: undefined })
  | (Omit<RawEventsQuery, 'event_name' | 'before'> & {
      readonly event_names: readonly string[];
      readonly event_name?: undefined;
      readonly customer_days?: readonly CustomerDay[];
      /** Null allows any position in the log. */
      readonly before: ReadonlyMap<number, bigint> | null;
    });

function buildBeforeCondition(before: ReadonlyMap<number, bigint>, params: Record<string, unknown>) {
  const partitions = [...before.keys()];
  params['partitions'] = partitions;
  params['before'] = partitions.map((partition) => before.get(partition)!);
  return (partition: string, offset: string) =>
    `${offset} < transform(${partition}, {partitions:Array(UInt16)}, {before:Array(UInt64)}, toUInt64(0))`;
}

/** The exact days, preceded by conditions that can use the sort key of the table: the customers, and the months to read. */
function customerDaysConditions(customer_days: readonly CustomerDay[], params: Record<string, unknown>): string[] {
  params['day_customers'] = customer_days.map(({ external_customer_id }) => external_customer_id);
  params['day_names'] = customer_days.map(({ event_name }) => event_name);
  params['days'] = customer_days.map(({ day }) => day);
  params['day_months'] = [...new Set(customer_days.map(({ day }) => toMonthNumber(day)))];
  return [
    'toYYYYMM(timestamp) in {day_months:Array(UInt32)}',
    'external_customer_id in {day_customers:Array(String)}',
    `(external_customer_id, event_name, toInt32(toDate32(timestamp))) in
       (select x.1, x.2, x.3 from
         (select arrayJoin(arrayZip({day_customers:Array(String)}, {day_names:Array(String)}, {days:Array(Int32)})) as x))`,
  ];
}

/** Builds the condition for ranges. A few ranges become comparisons, which can use the index of the table. */
function rangesCondition(ranges: readonly (readonly [number, number])[], params: Record<string, unknown>): string {
  if (ranges.length === 0) return '0';
  const parts = ranges.map(([start, end], index) => {
    params[`start_${index}`] = start;
    params[`end_${index}`] = end;
    return `(timestamp >= fromUnixTimestamp64Micro({start_${index}:Int64}, 'UTC') and timestamp < fromUnixTimestamp64Micro({end_${index}:Int64}, 'UTC'))`;
  });
  return `(${parts.join(' or ')})`;
}
