/** Queries for the names, customers and first time of stored events; they need no meter. */
import { z } from 'zod';
import type { Scope } from '../../core/foundation/scope.ts';
import { type ClickHouseClient, defineStatement } from '../clickhouse/clickhouse.ts';

/**
 * Names of the events that these customers sent in a range. Names of voided events are included, and measuring them finds nothing.
 * Excluding them would take as long as reading all corrections.
 */
export const selectEventNames = defineStatement({
  name: 'event names of customers',
  sql: `select distinct event_name from (
          select tenant_id, environment_id, external_customer_id, timestamp, event_name from events
           union all
          select tenant_id, environment_id, external_customer_id, timestamp, event_name from event_corrections)
         where tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
           and external_customer_id in {customers:Array(String)}
           and timestamp >= fromUnixTimestamp64Micro({start_us:Int64}, 'UTC')
           and timestamp < fromUnixTimestamp64Micro({end_us:Int64}, 'UTC')`,
  params: z.object({
    tenant_id: z.string(),
    environment_id: z.string(),
    customers: z.array(z.string()),
    start_us: z.number(),
    end_us: z.number(),
  }),
  row: z.object({ event_name: z.string() }),
});

/** The next customers with one of these events in a range, in order of their external ids. */
export const customersWithEvents = defineStatement({
  name: 'customers with events',
  sql: `select distinct external_customer_id from current_events
         where tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
           and event_name in {event_names:Array(String)} and external_customer_id > {after:String}
           and timestamp >= fromUnixTimestamp64Micro({start_us:Int64}, 'UTC')
           and timestamp < fromUnixTimestamp64Micro({end_us:Int64}, 'UTC')
         order by external_customer_id limit {limit:UInt32}`,
  params: z.object({
    tenant_id: z.string(),
    environment_id: z.string(),
    event_names: z.array(z.string()),
    after: z.string(),
    start_us: z.number(),
    end_us: z.number(),
    limit: z.int(),
  }),
  row: z.object({ external_customer_id: z.string() }),
});

/** Time of the first event with a name, of some customers or all; null if there is none. */
export async function findFirstEventTime(
  clickhouse: ClickHouseClient,
  scope: Scope,
  wanted: { event_name: string; external_customer_ids: readonly string[] | null },
): Promise<number | null> {
  const { tenant_id, environment_id } = scope;
  const customers = wanted.external_customer_ids ?? [];
  const bindings = { tenant_id, environment_id, event_name: wanted.event_name, customers: [...customers] };
  const [row] = await firstEvents.run(clickhouse, {
    ...bindings,
    everybody: wanted.external_customer_ids === null ? 1 : 0,
  });
  return row && row.events > 0 ? row.first_us : null;
}

const firstEvents = defineStatement({
  name: 'first event',
  sql: `select toString(count()) as events, toString(toUnixTimestamp64Micro(min(timestamp))) as first_us from current_events
         where tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and event_name = {event_name:String}
           and ({everybody:UInt8} or external_customer_id in {customers:Array(String)})`,
  params: z.object({
    tenant_id: z.string(),
    environment_id: z.string(),
    event_name: z.string(),
    customers: z.array(z.string()),
    everybody: z.int(),
  }),
  row: z.object({ events: z.coerce.number(), first_us: z.coerce.number() }),
});
