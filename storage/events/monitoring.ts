/** Counts events per time window, and the backlog of the processing. */

import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { runAsSystem } from '../foundation/request-context.ts';
import type { Stores } from '../foundation/stores.ts';
import { EmbeddedLog } from '../log/embedded/embedded.ts';

type EventCount = { readonly start_us: Microseconds; readonly event_count: number };

/** Events by their own timestamp in [start_us, end_us), counted per window; the windows begin at `starts`, in order. */
export async function countEvents(
  clickhouse: ClickHouseClient,
  scope: Scope,
  requested: { start_us: Microseconds; end_us: Microseconds; starts: readonly number[] },
): Promise<EventCount[]> {
  try {
    const answer = await clickhouse.query({
      query: `
        select toString(roundDown(toUnixTimestamp64Micro(timestamp), {starts:Array(Int64)})) as start, count() as n
          from events
         where tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
           and timestamp >= fromUnixTimestamp64Micro({start_us:Int64}, 'UTC')
           and timestamp < fromUnixTimestamp64Micro({end_us:Int64}, 'UTC')
         group by start`,
      query_params: { ...scope, ...requested },
      format: 'JSONEachRow',
    });
    const rows = await answer.json<{ start: string; n: string }>();
    return rows
      .map((row) => ({ start_us: Number(row.start), event_count: Number(row.n) }))
      .sort((a, b) => a.start_us - b.start_us);
  } catch (error) {
    throw toClickHouseFailure('count of events', error);
  }
}

/** Counts what is durable in the log and not yet in the stores: in events for the embedded log, otherwise in records. */
export async function countUnprocessed({ log, postgres }: Stores): Promise<number> {
  if (log instanceof EmbeddedLog) {
    // The backlog covers the whole log: it is one number and exposes no tenant's row.
    const requested = async () =>
      postgres.raw(
        `select coalesce(sum(r.event_count), 0)::bigint as events
           from log_partitions p join log_records r on r.partition = p.partition and r."offset" >= p.committed_offset`,
      );
    const { rows } = await runAsSystem(requested);
    return Number(rows[0].events);
  }
  return (await log.lag()).reduce((sum, partition) => sum + partition.unprocessed_records, 0);
}

/** Number of meter versions of this environment that are still being counted, and of corrections and rebuilds that have no effect yet. */
export async function postProcessingLag({ postgres }: Stores, scope: Scope): Promise<number> {
  const { rows } = await postgres.raw(
    `select (select count(*) from meter_versions
              where tenant_id = :tenant_id and environment_id = :environment_id and state in ('announced', 'backfilling'))
          + (select count(*) from event_corrections
              where tenant_id = :tenant_id and environment_id = :environment_id and applied_at is null)
          + (select count(*) from bucket_rebuilds
              where tenant_id = :tenant_id and environment_id = :environment_id and done_at is null) as behind`,
    { ...scope },
  );
  return Number(rows[0].behind);
}
