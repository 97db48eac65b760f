/** The bucket rows as they are stored, merged by key: read for audits, taken away for rebuilds. */
import { Decimal } from '../../core/decimal.ts';
import type { BucketRow } from '../../core/metering/plan.ts';
import { scaledOfDecimal } from '../../core/metering/quantity.ts';
import { US_PER_DAY } from '../../core/metering/timestamp.ts';
import { type ClickHouseClient, clickhouseFailure } from '../clickhouse.ts';
import { rangeConditions } from '../events/customer-ranges.ts';
import type { Counted, DayWanted } from './recount.ts';

/** A stored row: `unique_count` of its set, and of the set united with `united`, in place of the values themselves. */
export type StoredRow = Omit<BucketRow, 'uniques'> & { readonly unique_count: number; readonly united_count: number };

/** The merged rows of one UTC day. `expected`: rows whose distinct values are united with the stored ones, to compare the sets. */
export async function storedRows(
  clickhouse: ClickHouseClient,
  counted: Counted,
  { day, external_customer_ids, range, expected = [] }: DayWanted & { expected?: readonly BucketRow[] },
): Promise<StoredRow[]> {
  const conditions = [...KEY, 'toInt32(toDate32(bucket_start)) = {day:Int32}'];
  const params: Record<string, unknown> = { ...keyOf(counted), day };
  if (external_customer_ids) {
    conditions.push('external_customer_id in {customers:Array(String)}');
    params['customers'] = external_customer_ids;
  }
  if (range) conditions.push(...rangeConditions(range, params));
  const sets = expected.filter((row) => row.uniques.length > 0);
  if (sets.length > 0) params['sets'] = JSON.stringify(sets.map(setOf));
  const query = `
    select size, external_customer_id as customer, start_s, group_key, sum(n) as event_total, sum(s) as value_sum, sum(w) as weight_sum,
           min(least_value) as value_min, max(greatest_value) as value_max, max(newest_value) as newest,
           uniqExactArrayIf(u, stored) as distinct_values, uniqExactArray(u) as united_values, max(stored) as is_stored
      from (select size, external_customer_id, toInt64(toUnixTimestamp64Second(toDateTime64(bucket_start, 0, 'UTC'))) as start_s, group_key,
                   event_count as n, sum as s, weighted_sum as w, min as least_value, max as greatest_value, latest as newest_value,
                   unique_values as u, true as stored
              from usage_buckets where ${conditions.join(' and ')} ${sets.length > 0 ? UNITED : ''})
     group by size, customer, start_s, group_key`;
  try {
    const answer = await clickhouse.query({ query, query_params: params, format: 'JSONEachRow' });
    return (await answer.json<AnswerRow>()).filter((row) => row.is_stored).map((row) => rowOf(counted, row));
  } catch (error) {
    throw clickhouseFailure('stored usage rows', error);
  }
}

/** The UTC days with rows of the meter's version. */
export async function daysWithRows(clickhouse: ClickHouseClient, counted: Counted): Promise<number[]> {
  try {
    const answer = await clickhouse.query({
      query: `select distinct toInt32(toDate32(bucket_start)) as day from usage_buckets where ${KEY.join(' and ')} order by day`,
      query_params: keyOf(counted),
      format: 'JSONCompactEachRow',
    });
    return (await answer.json<[number]>()).map(([day]) => Number(day));
  } catch (error) {
    throw clickhouseFailure('days of usage rows', error);
  }
}

/** The rows of these customers and days; `deadline_s` is decided by the engine's clock, as for inserts (storage/events/rows.ts). */
export type RowsToDelete = {
  readonly counted: Counted;
  readonly day: number;
  /** All of the day when absent. */
  readonly external_customer_ids?: readonly string[] | undefined;
};

/**
 * One mutation for each month that they are of, because a mutation makes every part of what it looks at anew; resolves when
 * all are through. Rows that are inserted after one began are never touched by it.
 */
export async function deleteRows(
  clickhouse: ClickHouseClient,
  rows: readonly RowsToDelete[],
  deadline_s: number,
): Promise<void> {
  if (rows.length === 0) return;
  try {
    for (const month of new Set(rows.map(({ day }) => monthOf(day)))) {
      const some = rows.filter(({ day }) => monthOf(day) === month);
      await clickhouse.command({
        query: `delete from usage_buckets in partition ${month} where ${deletedCondition} and toUnixTimestamp(now()) < ${deadline_s}`,
        query_params: deletedParams(some),
        clickhouse_settings: { lightweight_deletes_sync: '2', mutations_sync: '2' },
      });
    }
  } catch (error) {
    throw clickhouseFailure('delete of usage rows', error);
  }
}

/** How many such rows there are. */
export async function countRows(clickhouse: ClickHouseClient, rows: readonly RowsToDelete[]): Promise<number> {
  try {
    const answer = await clickhouse.query({
      query: `select toString(count()) as n from usage_buckets where ${deletedCondition}`,
      query_params: deletedParams(rows),
      format: 'JSONEachRow',
    });
    const [row] = await answer.json<{ n: string }>();
    return Number(row!.n);
  } catch (error) {
    throw clickhouseFailure('count of usage rows', error);
  }
}

/** The partition of the table: toYYYYMM. */
function monthOf(day: number): number {
  const date = new Date((day * US_PER_DAY) / 1000);
  return date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
}

const deletedCondition = `
  (tenant_id, environment_id, meter_id) in
    (select x.1, x.2, x.3 from (select arrayJoin(JSONExtract({meters:String}, 'Array(Tuple(String, String, String))')) as x))
  and ((meter_id, meter_version, external_customer_id, toInt32(toDate32(bucket_start))) in
    (select x.1, x.2, x.3, x.4 from (select arrayJoin(JSONExtract({rows:String}, 'Array(Tuple(String, UInt32, String, Int32))')) as x))
    or (meter_id, meter_version, toInt32(toDate32(bucket_start))) in
    (select x.1, x.2, x.3 from (select arrayJoin(JSONExtract({days:String}, 'Array(Tuple(String, UInt32, Int32))')) as x)))`;

function deletedParams(rows: readonly RowsToDelete[]): Record<string, string> {
  const meters = new Map(
    rows.map(({ counted }) => [counted.meter_id, [counted.tenant_id, counted.environment_id, counted.meter_id]]),
  );
  const keys = rows.flatMap(({ counted, day, external_customer_ids }) =>
    (external_customer_ids ?? []).map((customer) => [counted.meter_id, counted.version, customer, day]),
  );
  const days = rows.flatMap(({ counted, day, external_customer_ids }) =>
    external_customer_ids === undefined ? [[counted.meter_id, counted.version, day]] : [],
  );
  return { meters: JSON.stringify([...meters.values()]), rows: JSON.stringify(keys), days: JSON.stringify(days) };
}

const KEY = [
  'tenant_id = {tenant_id:String}',
  'environment_id = {environment_id:String}',
  'meter_id = {meter_id:String}',
  'meter_version = {meter_version:UInt32}',
];

function keyOf({ tenant_id, environment_id, meter_id, version }: Counted): Record<string, unknown> {
  return { tenant_id, environment_id, meter_id, meter_version: version };
}

/** Rows of nothing but a set. */
const UNITED = `
    union all
    select x.1, x.2, x.3, x.4, 0, 0, 0, null, null, (toInt64(-9223372036854775808), '', toDecimal256(0, 24)),
           x.5, false
      from (select arrayJoin(JSONExtract({sets:String}, 'Array(Tuple(String, String, Int64, String, Array(String)))')) as x)`;

function setOf(row: BucketRow): unknown[] {
  return [row.size, row.external_customer_id, row.bucket_start_us / 1_000_000, row.group_key, row.uniques];
}

type AnswerRow = {
  size: BucketRow['size'];
  customer: string;
  start_s: string;
  group_key: string;
  event_total: string;
  value_sum: string;
  weight_sum: string;
  value_min: string | null;
  value_max: string | null;
  newest: [string, string, string];
  distinct_values: string;
  united_values: string;
  is_stored: boolean;
};

const NEVER = '-9223372036854775808';

function rowOf({ tenant_id, environment_id, meter_id }: Counted, row: AnswerRow): StoredRow {
  const [timestamp_us, event_id, value] = row.newest;
  return {
    tenant_id,
    environment_id,
    meter_id,
    size: row.size,
    external_customer_id: row.customer,
    bucket_start_us: Number(row.start_s) * 1_000_000,
    group_key: row.group_key,
    count: Number(row.event_total),
    sum: scaled(row.value_sum),
    weighted_sum: scaled(row.weight_sum),
    min: row.value_min === null ? null : scaled(row.value_min),
    max: row.value_max === null ? null : scaled(row.value_max),
    latest: timestamp_us === NEVER ? null : { timestamp_us: Number(timestamp_us), event_id, value: scaled(value) },
    unique_count: Number(row.distinct_values),
    united_count: Number(row.united_values),
  };
}

function scaled(text: string): bigint {
  return scaledOfDecimal(new Decimal(text));
}
