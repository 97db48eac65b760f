/** Cuts the customers of a day into ranges of their names, for work that must not hold all of them in memory. */
import type { Scope } from '../../core/scope.ts';
import type { Microseconds } from '../../core/time/instant.ts';
import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';

/** Customers in the order of their names' bytes: behind `after`, up to and with `until`; open where one is absent. */
export type CustomerRange = { readonly after?: string | undefined; readonly until?: string | undefined };

export type CustomerRangesQuery = Scope & {
  readonly event_name: string;
  /** Half-open, in microseconds. */
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  /** Only what stands before these offsets, by partition. */
  readonly before: ReadonlyMap<number, bigint>;
};

/**
 * Ranges that leave nobody out, each with about so many events, or with one customer who has more. They follow from the
 * events as they were accepted, whatever is corrected: who asks again gets the same.
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

/** As conditions on `external_customer_id`, which the order of the tables can use; adds their parameters. */
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
