/**
 * All events of a time as they count now, for an export: in one statement, so that an event which is corrected meanwhile is there
 * once, as it was or as it is. As sent they come in the order of the table (by customer, name and time), which needs no memory.
 */
import type { ExportedEvent } from '../../core/export/events.ts';
import type { Scope } from '../../core/scope.ts';
import type { Microseconds } from '../../core/time/instant.ts';
import { type ClickHouseClient, clickhouseFailure, streamedRows } from '../clickhouse/clickhouse.ts';

export type EventsOfTime = Scope & {
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly signal?: AbortSignal | undefined;
};

const SCOPE = 'tenant_id = {tenant_id:String} and environment_id = {environment_id:String}';
const WANTED = `${SCOPE} and timestamp >= fromUnixTimestamp64Micro({start_us:Int64}, 'UTC')
   and timestamp < fromUnixTimestamp64Micro({end_us:Int64}, 'UTC')`;
const COLUMNS = `event_id, event_name, external_customer_id, customer_id, toUnixTimestamp64Micro(timestamp) as at_us,
  toUnixTimestamp64Micro(received_at) as got_us, source, properties`;

const QUERY = `
  select * from (
    select ${COLUMNS} from events where ${WANTED} and event_id not in (select event_id from event_corrections where ${SCOPE})
     order by tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id)
  union all
  select * from (
    select ${COLUMNS} from event_corrections where ${WANTED} and action = 'replace'
       and (event_id, sequence) in (select event_id, max(sequence) from event_corrections where ${SCOPE} group by event_id)
     limit 1 by event_id)`;

/** Some rows at a time, as they come. */
export async function* eventsOfTime(
  clickhouse: ClickHouseClient,
  { tenant_id, environment_id, start_us, end_us, signal }: EventsOfTime,
): AsyncGenerator<readonly ExportedEvent[]> {
  const query_params = { tenant_id, environment_id, start_us, end_us };
  const asked = { query: QUERY, query_params, settings: FEW_STREAMS, ...(signal ? { abort_signal: signal } : {}) };
  try {
    yield* streamedRows<ExportedEvent>(clickhouse, asked);
  } catch (error) {
    signal?.throwIfAborted();
    throw clickhouseFailure('exported events', error);
  }
}

/** Blocks that are read beside each other are in memory beside each other; others want the cores, too. */
const FEW_STREAMS = { max_threads: 2, max_block_size: '8192' } as const;
