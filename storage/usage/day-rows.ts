/**
 * Day rows made of base rows, by the engine alone: one insert for each UTC day, over all meters. What is summed up must not
 * change meanwhile (actions/make-day-rows.ts closes the gate of the rows).
 */
import { US_PER_DAY } from '../../core/metering/timestamp.ts';
import { type ClickHouseClient, clickhouseFailure } from '../clickhouse.ts';
import { type Fence, tooLate } from '../events/rows.ts';

/** The UTC days of [from, until) with base rows, in order. */
export async function daysWithBaseRows(
  clickhouse: ClickHouseClient,
  { from, until }: { from: number; until: number },
): Promise<number[]> {
  try {
    const answer = await clickhouse.query({
      query: `select distinct toInt32(toDate32(bucket_start)) as day from usage_buckets
               where size != 'DAY' and ${between(from, until)} order by day`,
      format: 'JSONCompactEachRow',
    });
    return (await answer.json<[number]>()).map(([day]) => Number(day));
  } catch (error) {
    throw clickhouseFailure('days with usage rows', error);
  }
}

/** Takes away the day rows of this day and later ones: what a try left that was broken off. */
export async function deleteDayRows(clickhouse: ClickHouseClient, from: number, deadline_s: number): Promise<void> {
  const left = `size = 'DAY' and bucket_start >= ${startOf(from)}`;
  const count = async () => {
    const answer = await clickhouse.query({
      query: `select toString(count()) as n from usage_buckets where ${left}`,
      format: 'JSONEachRow',
    });
    return Number((await answer.json<{ n: string }>())[0]!.n);
  };
  try {
    if ((await count()) === 0) return;
    await clickhouse.command({
      query: `delete from usage_buckets where ${left} and toUnixTimestamp(now()) < ${deadline_s}`,
      clickhouse_settings: { lightweight_deletes_sync: '2', mutations_sync: '2' },
    });
    if ((await count()) > 0) throw tooLate('usage_buckets');
  } catch (error) {
    throw clickhouseFailure('delete of day rows', error);
  }
}

/** Sums up the base rows of a day. All of them are in when this resolves before the deadline. */
export async function insertDayRows(clickhouse: ClickHouseClient, day: number, fence: Fence): Promise<void> {
  try {
    await clickhouse.command({
      query: `
        insert into usage_buckets (tenant_id, environment_id, meter_id, meter_version, size, external_customer_id, bucket_start,
                                   group_key, event_count, sum, weighted_sum, min, max, latest, unique_values)
        select tenant_id, environment_id, meter_id, meter_version, 'DAY', external_customer_id, ${startOf(day)},
               group_key, sum(event_count), sum(sum), sum(weighted_sum), min(min), max(max), max(latest),
               groupUniqArrayArray(unique_values)
          from usage_buckets
         where size != 'DAY' and ${between(day, day + 1)} and toUnixTimestamp(nowInBlock()) < ${fence.deadline_s}
         group by tenant_id, environment_id, meter_id, meter_version, external_customer_id, group_key`,
      clickhouse_settings: {
        insert_deduplication_token: `usage_buckets:${fence.token}:${day}`,
        max_threads: 1,
        max_insert_threads: '1',
        max_bytes_before_external_group_by: '1000000000',
        optimize_on_insert: 0,
      },
    });
  } catch (error) {
    throw clickhouseFailure('insert of day rows', error);
  }
}

function between(from: number, until: number): string {
  return `bucket_start >= ${startOf(from)} and bucket_start < ${startOf(until)}`;
}

function startOf(day: number): string {
  return `toDateTime64(${(day * US_PER_DAY) / 1_000_000}, 0, 'UTC')`;
}
