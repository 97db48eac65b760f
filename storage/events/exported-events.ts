/**
 * All events of a time as they count now, for an export: in one statement, so that an event which is corrected meanwhile is there
 * once, as it was or as it is. As sent they come in the order of the table (by customer, name and time), which needs no memory.
 */
import { z } from 'zod';
import type { ExportedEvent } from '../../core/export/events.ts';
import type { Scope } from '../../core/scope.ts';
import type { Microseconds } from '../../core/time/instant.ts';
import { type ClickHouseClient, clickhouseFailure, question, streamedRows } from '../clickhouse/clickhouse.ts';

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

const longestEvent = question({
  name: 'the longest event of a time',
  sql: `select toUInt32(max(length(properties))) as bytes from events where ${WANTED}`,
  params: z.object({ tenant_id: z.string(), environment_id: z.string(), start_us: z.number(), end_us: z.number() }),
  row: z.object({ bytes: z.number() }),
});

/** Some rows at a time, as they come. */
export async function* eventsOfTime(
  clickhouse: ClickHouseClient,
  { tenant_id, environment_id, start_us, end_us, signal }: EventsOfTime,
): AsyncGenerator<readonly ExportedEvent[]> {
  const query_params = { tenant_id, environment_id, start_us, end_us };
  const calledOff = signal ? { abort_signal: signal } : {};
  try {
    const [longest] = await longestEvent.ask(clickhouse, query_params, { ...calledOff, settings: FEW_STREAMS });
    const settings = { ...FEW_STREAMS, max_block_size: String(rowsPerBlock(longest!.bytes)) };
    const asked = { query: QUERY, query_params, settings, ...calledOff };
    yield* streamedRows<ExportedEvent>(clickhouse, asked);
  } catch (error) {
    signal?.throwIfAborted();
    throw clickhouseFailure('exported events', error);
  }
}

/** Blocks that are read beside each other are in memory beside each other; others want the cores, too. */
const FEW_STREAMS = { max_threads: 2 } as const;

const ROWS_PER_BLOCK = 8_192;
const BYTES_PER_BLOCK = 4 * 1_048_576;

/**
 * Where parts are merged into the order of the table the store makes blocks by their rows, whatever their bytes: with the longest event
 * in each row they are still bounded, and there is one of each part.
 */
function rowsPerBlock(longest_bytes: number): number {
  return Math.max(1, Math.min(ROWS_PER_BLOCK, Math.floor(BYTES_PER_BLOCK / Math.max(1, longest_bytes))));
}
