/**
 * Lists events that usage windows did not count, newest receipt first. Such an event is in a window of its customer, at or after the position
 * in the log up to which the window was counted. The caller applies the filters of meters.
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

export type LateCandidate = FoundEvent & ReceiptPlace;

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
/** The conditions of the subquery follow from the join. They are repeated there for the primary key and the index of offsets. */
const QUERY = `
  select event_id, external_customer_id, customer_id, event_name, source, properties,
         toString(toUnixTimestamp64Micro(timestamp)) as timestamp_us_text,
         toString(toUnixTimestamp64Micro(received_at)) as received_at_us_text, partition, toString(offset) as offset_text, position
    from (select * from current_events
           where tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
             and external_customer_id in {customers:Array(String)} and event_name in {names:Array(String)}
             and timestamp >= ${time('start_us')} and timestamp < ${time('end_us')}
             and offset >= transform(partition, {partitions:Array(UInt16)}, {least:Array(UInt64)}, toUInt64(0))
             and received_at >= ${time('received_from_us')} and received_at < ${time('received_until_us')}
             and ({has_after:Bool} = false or (received_at, partition, offset, position)
                   < (${time('after')}, {after_partition:UInt16}, {after_offset:UInt64}, {after_position:UInt32}))) as event
    inner join (
      select w.1 as window_customer, w.2 as window_name, w.3 as window_start_us, w.4 as window_end_us, w.5 as window_marks
        from (select arrayJoin(arrayZip({window_customers:Array(String)}, {window_names:Array(String)},
                {window_starts:Array(Int64)}, {window_ends:Array(Int64)}, {window_marks:Array(Array(UInt64))})) as w)) as counted
      on event.external_customer_id = counted.window_customer and event.event_name = counted.window_name
   where toUnixTimestamp64Micro(timestamp) >= window_start_us and toUnixTimestamp64Micro(timestamp) < window_end_us
     and offset >= window_marks[indexOf({partitions:Array(UInt16)}, partition)]
   order by received_at desc, partition desc, offset desc, position desc limit 1 by event_id limit {limit:UInt32}`;

type LateRow = Omit<FoundEvent, 'timestamp_us' | 'received_at_us' | 'offset'> & {
  timestamp_us_text: string;
  received_at_us_text: string;
  offset_text: string;
  position: number;
};

export async function listLateCandidates(
  clickhouse: ClickHouseClient,
  { windows, after, bounds, ...wanted }: LateEventsQuery,
): Promise<LateCandidate[]> {
  if (windows.length === 0) return [];
  const { tenant_id } = wanted;
  const params = { ...wanted, ...toWindowParams(windows), ...toPlaceParams(after) };
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

/** Builds one row for each customer and window. Meters that counted the same window have one row, so that the join returns its events once. */
function toWindowParams(windows: readonly CountedUsageWindow[]) {
  const partitions = [...new Set(windows.flatMap(({ marks }) => Object.keys(marks)))];
  const offsets = windows.map(({ marks }) => partitions.map((partition) => BigInt(marks[partition] ?? 0)));
  const distinct = new Map<string, readonly [string, string, number, number, bigint[]]>();
  for (const [at, { event_name, external_customer_ids, start_us, end_us }] of windows.entries())
    for (const customer of external_customer_ids) {
      const row = [customer, event_name, start_us, end_us, offsets[at]!] as const;
      distinct.set([customer, event_name, start_us, end_us, offsets[at]!.join()].join('\0'), row);
    }
  const rows = [...distinct.values()];
  return {
    customers: [...new Set(rows.map(([customer]) => customer))],
    names: [...new Set(rows.map(([, name]) => name))],
    start_us: Math.min(...rows.map(([, , start]) => start)),
    end_us: Math.max(...rows.map(([, , , end]) => end)),
    partitions: partitions.map(Number),
    least: partitions.map((_, at) => offsets.map((row) => row[at]!).reduce((a, b) => (a < b ? a : b))),
    window_customers: rows.map(([customer]) => customer),
    window_names: rows.map(([, name]) => name),
    window_starts: rows.map(([, , start]) => start),
    window_ends: rows.map(([, , , end]) => end),
    window_marks: rows.map(([, , , , marks]) => marks),
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
