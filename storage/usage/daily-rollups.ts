/**
 * Daily rollups of base rows, computed by the engine: one insert per UTC day, over all meters. The base rows must not change meanwhile
 * (actions/metering/usage/make-daily-rollups.ts locks the bucket rows).
 */
import { unavailable } from '../../core/foundation/error.ts';
import { US_PER_DAY, US_PER_SECOND } from '../../core/foundation/time/instant.ts';
import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { deleteWhere } from '../clickhouse/delete.ts';
import { MARK } from '../events/bucket-rows.ts';
import { writeFailure } from '../events/rows.ts';
import { buildFenceCondition, buildStatementMark, type WriteAttempt } from '../events/write-fence.ts';

/** Lists the UTC days of [from, until) with base rows, in order. */
export async function listDaysWithBaseRows(
  clickhouse: ClickHouseClient,
  { from, until }: { from: number; until: number },
): Promise<{ day: number; base_rows: number }[]> {
  try {
    const answer = await clickhouse.query({
      query: `select toInt32(toDate32(bucket_start)) as day, toString(count()) from usage_buckets
               where ${BASE} and ${between(from, until)} group by day order by day`,
      format: 'JSONCompactEachRow',
    });
    return (await answer.json<[number, string]>()).map(([day, rows]) => ({
      day: Number(day),
      base_rows: Number(rows),
    }));
  } catch (error) {
    throw toClickHouseFailure('days with bucket rows', error);
  }
}

/** Deletes the daily rollups of this day and later days that attempts with smaller numbers left. */
export async function deleteDailyRollups(clickhouse: ClickHouseClient, from: number, attempt: bigint): Promise<void> {
  const condition = `size = 'DAY' and bucket_start >= ${toDayStart(from)} and attempt < ${attempt}`;
  await deleteWhere(clickhouse, { table: 'usage_buckets', conditions: [condition] });
}

/** Aggregates the base rows of a day, and checks that the rollups cover all of them. */
export async function insertDailyRollups(clickhouse: ClickHouseClient, day: number, own: WriteAttempt): Promise<void> {
  try {
    await clickhouse.command({
      query: `
        insert into usage_buckets (tenant_id, environment_id, meter_id, meter_version, size, external_customer_id, bucket_start,
                                   group_key, event_count, sum, weighted_sum, min, max, latest, unique_values, attempt)
        select tenant_id, environment_id, meter_id, meter_version, 'DAY', external_customer_id, ${toDayStart(day)},
               group_key, sum(event_count), sum(sum), sum(weighted_sum), min(min), max(max), max(latest),
               groupUniqArrayArray(unique_values), ${own.attempt}
          from usage_buckets
         where ${BASE} and ${between(day, day + 1)} and ${buildFenceCondition(own)}
         group by tenant_id, environment_id, meter_id, meter_version, external_customer_id, group_key`,
      clickhouse_settings: {
        ...buildStatementMark(own),
        max_threads: 1,
        max_insert_threads: '1',
        max_bytes_before_external_group_by: '1000000000',
        optimize_on_insert: 0,
      },
    });
  } catch (error) {
    throw writeFailure('usage_buckets', error);
  }
  if (!(await isWhole(clickhouse, day)))
    throw unavailable('the usage store (daily rollups that were written are not there)');
}

/** Checks that the daily rollups count as many events as the base rows. */
async function isWhole(clickhouse: ClickHouseClient, day: number): Promise<boolean> {
  try {
    const answer = await clickhouse.query({
      query: `select sumIf(event_count, size = 'DAY') = sumIf(event_count, ${BASE}) as whole from usage_buckets
               where ${between(day, day + 1)}`,
      format: 'JSONEachRow',
    });
    return Boolean((await answer.json<{ whole: 0 | 1 }>())[0]!.whole);
  } catch (error) {
    throw toClickHouseFailure('count of daily rollups', error);
  }
}

const BASE = `size not in ('DAY', '${MARK}')`;

function between(from: number, until: number): string {
  return `bucket_start >= ${toDayStart(from)} and bucket_start < ${toDayStart(until)}`;
}

function toDayStart(day: number): string {
  return `toDateTime64(${(day * US_PER_DAY) / US_PER_SECOND}, 0, 'UTC')`;
}
