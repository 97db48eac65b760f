/** Stored bucket rows, merged by key: read by audits, deleted by rebuilds. */

import { groupBy } from '../../core/foundation/group-by.ts';
import { scopeKey } from '../../core/foundation/scope.ts';
import { US_PER_SECOND } from '../../core/foundation/time/instant.ts';
import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { deleteWhere } from '../clickhouse/delete.ts';
import { quoteText } from '../clickhouse/literals.ts';
import { buildRangeConditions } from '../events/customer-ranges.ts';
import { NO_LATEST, toMonthNumber, UNKNOWN_US } from '../events/tables.ts';
import type { CountedMeter, DaysWanted } from './recount.ts';
import { parseLatest, parseScaled, parseScaledOrNull } from './stored-values.ts';

/** A stored row with counts instead of distinct values: `unique_count` of its set, `united_count` of its union with the expected set. */
type StoredBucketRow = Omit<BucketRow, 'uniques'> & {
  readonly unique_count: number;
  readonly united_count: number;
};

/** Lists the merged rows of some UTC days. `expected`: rows whose distinct values are united with the stored ones, to compare the sets. */
export async function listStoredRows(
  clickhouse: ClickHouseClient,
  counted: CountedMeter,
  {
    days: [from, until],
    external_customer_ids,
    range,
    expected = [],
  }: DaysWanted & { expected?: readonly BucketRow[] },
): Promise<StoredBucketRow[]> {
  const conditions = [
    ...KEY,
    `bucket_start >= ${buildDayStart('{from_day:Int64}')}`,
    `bucket_start < ${buildDayStart('{until_day:Int64}')}`,
  ];
  const params: Record<string, unknown> = { ...toMeterKey(counted), from_day: from, until_day: until };
  if (external_customer_ids) {
    conditions.push('external_customer_id in {customers:Array(String)}');
    params['customers'] = external_customer_ids;
  }
  if (range) conditions.push(...buildRangeConditions(range, params));
  const sets = expected.filter((row) => row.uniques.length > 0);
  if (sets.length > 0) params['sets'] = JSON.stringify(sets.map(toUniqueSet));
  const query = `
    select size, external_customer_id as customer, start_s, group_key, sum(n) as event_total, sum(s) as value_sum, sum(w) as weight_sum,
           min(first_value) as first_seen, max(last_value) as last_seen,
           min(least_value) as value_min, max(greatest_value) as value_max, max(newest_value) as newest,
           uniqExactArrayIf(u, stored) as distinct_values, uniqExactArray(u) as united_values, max(stored) as is_stored
      from (select size, external_customer_id, toInt64(toUnixTimestamp64Second(toDateTime64(bucket_start, 0, 'UTC'))) as start_s, group_key,
                   event_count as n, sum as s, weighted_sum as w, first_us as first_value, last_us as last_value,
                   min as least_value, max as greatest_value, latest as newest_value, unique_values as u, true as stored
              from usage_buckets where ${conditions.join(' and ')} ${sets.length > 0 ? UNITED : ''})
     group by size, customer, start_s, group_key`;
  try {
    const answer = await clickhouse.query({ query, query_params: params, format: 'JSONEachRow' });
    return (await answer.json<AnswerRow>()).filter((row) => row.is_stored).map((row) => toStoredRow(counted, row));
  } catch (error) {
    throw toClickHouseFailure('stored bucket rows', error);
  }
}

/** Lists the UTC days with rows of the meter's version, with their number of rows. */
export async function listDaysWithRows(
  clickhouse: ClickHouseClient,
  counted: CountedMeter,
): Promise<{ day: number; rows: number }[]> {
  try {
    const answer = await clickhouse.query({
      query: `select ${DAY} as day, toString(count()) from usage_buckets where ${KEY.join(' and ')} group by day order by day`,
      query_params: toMeterKey(counted),
      format: 'JSONCompactEachRow',
    });
    return (await answer.json<[number, string]>()).map(([day, rows]) => ({ day: Number(day), rows: Number(rows) }));
  } catch (error) {
    throw toClickHouseFailure('days of bucket rows', error);
  }
}

/** Rows of these customers on this day. */
export type RowsToDelete = {
  readonly counted: CountedMeter;
  readonly day: number;
  /** Absent: all customers of the day. */
  readonly external_customer_ids?: readonly string[] | undefined;
};

/**
 * Deletes rows that attempts with smaller numbers wrote; resolves when none is left. Rows of this attempt or a later one are never deleted,
 * even if the delete runs late. Conditions contain only constants, which replicated tables require. The delete runs month by month, because
 * each statement rewrites all parts of the months that it does not exclude. For two months in a table of eighty this took five seconds,
 * during which nothing was counted.
 */
export async function deleteRows(
  clickhouse: ClickHouseClient,
  rows: readonly RowsToDelete[],
  attempt: bigint,
): Promise<void> {
  const only = `attempt < ${attempt}`;
  const byMonth = groupBy(rows, ({ day }) => toMonthNumber(day));
  if (byMonth.size > MONTHS_MAX)
    return deleteWhere(clickhouse, { table: 'usage_buckets', conditions: buildRowConditions(rows), only });
  for (const [month, some] of byMonth)
    await deleteWhere(clickhouse, { table: 'usage_buckets', month, conditions: buildRowConditions(some), only });
}

/** Maximum number of months that get a statement each. For more months one statement is faster, because statements run in sequence. */
const MONTHS_MAX = 3;

/** Maximum length in characters. The last name of a list may exceed it; the limit of a statement is larger. */
const CONDITION_LENGTH_MAX = 100_000;

/** Builds conditions on lists of keys, which the engine turns into sets. A condition per meter would be tested on every row. */
function buildRowConditions(rows: readonly RowsToDelete[]): string[] {
  const conditions: string[] = [];
  for (const some of groupBy(rows, ({ counted }) => scopeKey(counted)).values()) {
    const { tenant_id, environment_id } = some[0].counted;
    const scope = `tenant_id = ${quoteText(tenant_id)} and environment_id = ${quoteText(environment_id)}`;
    const whole: string[] = [];
    const days: string[] = [];
    for (const { counted, day, external_customer_ids } of some) {
      const key = `${quoteText(counted.meter_id)}, ${counted.version}, ${day}`;
      if (external_customer_ids === undefined) whole.push(`(${key})`);
      else for (const customer of external_customer_ids) days.push(`(${key}, ${quoteText(customer)})`);
    }
    for (const part of pieces(whole)) conditions.push(`(${scope} and (${METER_DAY}) in (${part}))`);
    for (const part of pieces(days))
      conditions.push(`(${scope} and (${METER_DAY}, external_customer_id) in (${part}))`);
  }
  return conditions;
}

const DAY = 'toInt32(toDate32(bucket_start))';
const METER_DAY = `meter_id, meter_version, ${DAY}`;

/** SQL for the first second of a day, in a form that can use the sort key of the table. */
function buildDayStart(day: string): string {
  return `toDateTime64(${day} * 86400, 0, 'UTC')`;
}

function pieces(all: readonly string[]): string[] {
  const found: string[] = [];
  for (const one of all) {
    const last = found.at(-1);
    if (last === undefined || last.length + one.length > CONDITION_LENGTH_MAX) found.push(one);
    else found[found.length - 1] = `${last}, ${one}`;
  }
  return found;
}

const KEY = [
  'tenant_id = {tenant_id:String}',
  'environment_id = {environment_id:String}',
  'meter_id = {meter_id:String}',
  'meter_version = {meter_version:UInt32}',
];

function toMeterKey({ tenant_id, environment_id, meter_id, version }: CountedMeter): Record<string, unknown> {
  return { tenant_id, environment_id, meter_id, meter_version: version };
}

/** SQL for rows that contain only a set of distinct values. */
const UNITED = `
    union all
    select x.1, x.2, x.3, x.4, 0, 0, 0, ${UNKNOWN_US}, -${UNKNOWN_US}, null, null, ${NO_LATEST},
           x.5, false
      from (select arrayJoin(JSONExtract({sets:String}, 'Array(Tuple(String, String, Int64, String, Array(String)))')) as x)`;

function toUniqueSet(row: BucketRow): unknown[] {
  return [row.size, row.external_customer_id, row.bucket_start_us / US_PER_SECOND, row.group_key, row.uniques];
}

type AnswerRow = {
  size: BucketRow['size'];
  customer: string;
  start_s: string;
  group_key: string;
  event_total: string;
  value_sum: string;
  weight_sum: string;
  first_seen: string;
  last_seen: string;
  value_min: string | null;
  value_max: string | null;
  newest: [string, string, string];
  distinct_values: string;
  united_values: string;
  is_stored: boolean;
};

function knownOrNull(us: string): number | null {
  return Math.abs(Number(us)) === UNKNOWN_US ? null : Number(us);
}

function toStoredRow({ tenant_id, environment_id, meter_id }: CountedMeter, row: AnswerRow): StoredBucketRow {
  return {
    tenant_id,
    environment_id,
    meter_id,
    size: row.size,
    external_customer_id: row.customer,
    bucket_start_us: Number(row.start_s) * US_PER_SECOND,
    group_key: row.group_key,
    first_us: knownOrNull(row.first_seen),
    last_us: knownOrNull(row.last_seen),
    count: Number(row.event_total),
    sum: parseScaled(row.value_sum),
    weighted_sum: parseScaled(row.weight_sum),
    min: parseScaledOrNull(row.value_min),
    max: parseScaledOrNull(row.value_max),
    latest: parseLatest(row.newest),
    unique_count: Number(row.distinct_values),
    united_count: Number(row.united_values),
  };
}
