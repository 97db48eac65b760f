/** Divides the customers of a day into ranges of external ids, for work that cannot hold all of them in memory. */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';

/** Customers in the byte order of their ids: after `after` (exclusive), up to `until` (inclusive); an absent bound is open. */
export type CustomerRange = { readonly after?: string | undefined; readonly until?: string | undefined };

type CustomerRangesQuery = Scope & {
  readonly event_name: string;
  /** Half-open, in microseconds. */
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  /** Offsets by partition before which the events must lie. */
  readonly before: ReadonlyMap<number, bigint>;
};

/**
 * Ranges that cover all customers, each with about `events_max` events, or one customer with more. They depend only on accepted events and
 * not on corrections, so a repeated call returns equal ranges.
 */
export async function listCustomerRanges(
  clickhouse: ClickHouseClient,
  wanted: CustomerRangesQuery,
  events_max: number,
): Promise<CustomerRange[]> {
  const { before, ...params } = wanted;
  const partitions = [...before.keys()];
  try {
    const answer = await clickhouse.query({
      query: `
        select external_customer_id from (
          select external_customer_id, n, sum(n) over (order by external_customer_id) as total from (
            select external_customer_id, count() as n from events
             where tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
               and event_name = {event_name:String}
               and timestamp >= fromUnixTimestamp64Micro({start_us:Int64}, 'UTC')
               and timestamp < fromUnixTimestamp64Micro({end_us:Int64}, 'UTC')
               and offset < transform(partition, {partitions:Array(UInt16)}, {before:Array(UInt64)}, toUInt64(0))
             group by external_customer_id))
         where intDiv(total, {events_max:UInt64}) > intDiv(total - n, {events_max:UInt64})
         order by external_customer_id`,
      query_params: { ...params, partitions, before: partitions.map((each) => before.get(each)!), events_max },
      format: 'JSONCompactEachRow',
    });
    const ends = (await answer.json<[string]>()).map(([customer]) => customer);
    return [...ends, undefined].map((until, index) => ({ after: ends[index - 1], until }));
  } catch (error) {
    throw toClickHouseFailure('customers of raw events', error);
  }
}

/** Conditions on `external_customer_id` that can use the sort key of the tables; adds their parameters. */
export function buildRangeConditions({ after, until }: CustomerRange, params: Record<string, unknown>): string[] {
  const conditions: string[] = [];
  if (after !== undefined) {
    params['after'] = after;
    conditions.push('external_customer_id > {after:String}');
  }
  if (until !== undefined) {
    params['until'] = until;
    conditions.push('external_customer_id <= {until:String}');
  }
  return conditions;
}
