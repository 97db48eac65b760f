/**
 * Events that usage windows may not have counted, newest receipt first. They lie in a window of their customer, and they or their last
 * correction are at or after the position in the log up to which the window was counted. The caller applies the filters of meters, and
 * compares a corrected event with its earlier contents.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import { type ClickHouseClient, loadRows } from '../clickhouse/clickhouse.ts';
import { type QueryBounds, runAsLarge } from '../concurrency/query-bounds.ts';
import type { FoundEvent } from './find-events.ts';
import type { ReceiptPlace } from './uncounted-events.ts';

/** Usage window of some customers. Its usage has the events before the marks. */
export type CountedUsageWindow = {
  readonly event_name: string;
  readonly external_customer_ids: readonly string[];
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  /** First uncounted offset of each partition. No event of an unlisted partition was counted. */
  readonly marks: Readonly<Record<string, string>>;
};

export type LateCandidate = FoundEvent & ReceiptPlace & { readonly is_corrected: boolean };

type LateEventsQuery = Scope & {
  readonly windows: readonly CountedUsageWindow[];
  /** Range of the time of receipt. */
  readonly received_from_us: Microseconds;
  readonly received_until_us: Microseconds;
  /** Place after which the list continues. */
  readonly after: ReceiptPlace | null;
  readonly limit: number;
  readonly bounds: QueryBounds;
};

const time = (name: string) => `fromUnixTimestamp64Micro({${name}:Int64}, 'UTC')`;
const SCOPE = 'tenant_id = {tenant_id:String} and environment_id = {environment_id:String}';
const CONTENT = 'event_id, external_customer_id, customer_id, event_name, source, properties, timestamp, received_at';
const isAfterLeast = (partition: string, offset: string) =>
  `${offset} >= transform(${partition}, {partitions:Array(UInt16)}, {least:Array(UInt64)}, toUInt64(0))`;
const isAfterMark = (partition: string, offset: string) =>
  `${offset} >= window_marks[indexOf({partitions:Array(UInt16)}, ${partition})]`;

/** The conditions before the join follow from it; they use the order of the table and its index of offsets. */
const WANTED = `${SCOPE}
             and external_customer_id in {customers:Array(String)} and event_name in {names:Array(String)}
             and timestamp >= ${time('start_us')} and timestamp < ${time('end_us')}
             and received_at >= ${time('received_from_us')} and received_at < ${time('received_until_us')}`;
/** `known_partition` and `known_offset` are the position from which on the content counts. */
const QUERY = `
  select event_id, external_customer_id, customer_id, event_name, source, properties, is_corrected,
         toString(toUnixTimestamp64Micro(timestamp)) as timestamp_us_text,
         toString(toUnixTimestamp64Micro(received_at)) as received_at_us_text, partition, toString(offset) as offset_text, position
    from (
      select ${CONTENT}, partition, offset, position, partition as known_partition, offset as known_offset, false as is_corrected
        from events
       where ${WANTED} and ${isAfterLeast('partition', 'offset')}
         and event_id not in (select event_id from event_corrections where ${SCOPE})
      union all
      select ${CONTENT}, event_partition as partition, event_offset as offset, event_position as position,
             correction.partition as known_partition, correction.offset as known_offset, true as is_corrected
        from event_corrections as correction
       where ${WANTED} and action = 'replace'
         and (event_id, sequence) in (select event_id, max(sequence) from event_corrections where ${SCOPE} group by event_id)
         and (${isAfterLeast('event_partition', 'event_offset')} or ${isAfterLeast('correction.partition', 'correction.offset')})
       limit 1 by event_id) as event
    inner join (
      select arrayJoin(w.1) as window_customer, w.2 as window_name, w.3 as window_start_us, w.4 as window_end_us, w.5 as window_marks
        from (select arrayJoin(arrayZip({window_customers:Array(Array(String))}, {window_names:Array(String)},
                {window_starts:Array(Int64)}, {window_ends:Array(Int64)}, {window_marks:Array(Array(UInt64))})) as w)) as counted
      on event.external_customer_id = counted.window_customer and event.event_name = counted.window_name
   where toUnixTimestamp64Micro(timestamp) >= window_start_us and toUnixTimestamp64Micro(timestamp) < window_end_us
     and (${isAfterMark('partition', 'offset')} or ${isAfterMark('known_partition', 'known_offset')})
     and ({has_after:Bool} = false or (received_at, partition, offset, position)
           < (${time('after')}, {after_partition:UInt16}, {after_offset:UInt64}, {after_position:UInt32}))
   order by received_at desc, partition desc, offset desc, position desc limit 1 by event_id limit {limit:UInt32}`;

type LateRow = Omit<FoundEvent, 'timestamp_us' | 'received_at_us' | 'offset'> & {
  timestamp_us_text: string;
  received_at_us_text: string;
  offset_text: string;
  position: number;
  is_corrected: boolean;
};

export async function listLateCandidates(
  clickhouse: ClickHouseClient,
  { windows, after, bounds, ...wanted }: LateEventsQuery,
): Promise<LateCandidate[]> {
  if (windows.length === 0) return [];
  const { tenant_id, received_until_us } = wanted;
  const until = after === null ? {} : { received_until_us: Math.min(received_until_us, after.received_at_us + 1) };
  const params = { ...wanted, ...until, ...toWindowParams(windows), ...toPlaceParams(after) };
  const rows = await runAsLarge({ tenant_id, bounds }, () =>
    loadRows<LateRow>(clickhouse, 'late events', { query: QUERY, params, signal: bounds.signal }),
  );
  return rows.map(({ timestamp_us_text, received_at_us_text, offset_text, ...row }) => ({
    ...row,
    timestamp_us: Number(timestamp_us_text),
    received_at_us: Number(received_at_us_text),
    offset: Number(offset_text),
    meter_id: '',
  }));
}

/** Several meters may have counted the same events. The window of many customers is one row, so that its marks are sent once. */
function toWindowParams(windows: readonly CountedUsageWindow[]) {
  const partitions = [...new Set(windows.flatMap(({ marks }) => Object.keys(marks)))];
  const distinct = new Map<string, Omit<CountedUsageWindow, 'marks'> & { offsets: bigint[]; customers: Set<string> }>();
  for (const window of windows) {
    const { event_name, external_customer_ids, start_us, end_us, marks } = window;
    const offsets = partitions.map((partition) => BigInt(marks[partition] ?? 0));
    const key = [event_name, start_us, end_us, offsets.join()].join('\0');
    const row = distinct.get(key) ?? { ...window, offsets, customers: new Set() };
    for (const customer of external_customer_ids) row.customers.add(customer);
    distinct.set(key, row);
  }
  const rows = [...distinct.values()];
  const window_customers = rows.map(({ customers }) => [...customers]);
  return {
    customers: [...new Set(window_customers.flat())],
    names: [...new Set(rows.map(({ event_name }) => event_name))],
    start_us: Math.min(...rows.map(({ start_us }) => start_us)),
    end_us: Math.max(...rows.map(({ end_us }) => end_us)),
    partitions: partitions.map(Number),
    least: partitions.map((_, at) => rows.map(({ offsets }) => offsets[at]!).reduce((a, b) => (a < b ? a : b))),
    window_customers,
    window_names: rows.map(({ event_name }) => event_name),
    window_starts: rows.map(({ start_us }) => start_us),
    window_ends: rows.map(({ end_us }) => end_us),
    window_marks: rows.map(({ offsets }) => offsets),
  };
}

function toPlaceParams(after: ReceiptPlace | null) {
  const { received_at_us = 0, partition = 0, offset = 0, position = 0 } = after ?? {};
  return {
    has_after: after !== null,
    after: received_at_us,
    after_partition: partition,
    after_offset: offset,
    after_position: position,
  };
}
