/** Finds later events, so that repeated usage checks can skip times without events. */
import type { Scope } from '../../core/foundation/scope.ts';
import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';

/** First instant from `from` on at which any of these customers has an event; null if there is none. */
export async function findNextEventTime(
  clickhouse: ClickHouseClient,
  { tenant_id, environment_id }: Scope,
  { external_customer_ids, from }: { external_customer_ids: readonly string[]; from: Date },
): Promise<Date | null> {
  try {
    const answer = await clickhouse.query({
      query: `select toString(toUnixTimestamp64Milli(min(timestamp))) as first_ms, toString(count()) as event_count from events
               where tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
                 and external_customer_id in {external_customer_ids:Array(String)}
                 and timestamp >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC')`,
      query_params: { tenant_id, environment_id, external_customer_ids, from_ms: from.getTime() },
      format: 'JSONEachRow',
    });
    const [found] = await answer.json<{ first_ms: string; event_count: string }>();
    return !found || found.event_count === '0' ? null : new Date(Number(found.first_ms));
  } catch (error) {
    throw toClickHouseFailure('the next event of customers', error);
  }
}

/** Whether the environment has an event after this instant. */
export async function hasEventAfter(
  clickhouse: ClickHouseClient,
  { tenant_id, environment_id }: Scope,
  at: Date,
): Promise<boolean> {
  try {
    const answer = await clickhouse.query({
      query: `select 1 from events
               where tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
                 and timestamp > fromUnixTimestamp64Milli({at_ms:Int64}, 'UTC') limit 1`,
      query_params: { tenant_id, environment_id, at_ms: at.getTime() },
      format: 'JSONEachRow',
    });
    return (await answer.json()).length > 0;
  } catch (error) {
    throw toClickHouseFailure('an event after an instant', error);
  }
}
