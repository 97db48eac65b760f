/**
 * Usage rows merge with those of other slices, so nobody can tell later whether a slice is in them. Therefore every part
 * that a try writes holds a *mark*: a row with the writer's name and the number of the try. A part is there whole or not at
 * all, marks of a writer merge to the greatest number, and so a look at them tells what arrived, whenever it is asked
 * (docs/decisions/0002).
 */
import type { BucketRow } from '../../core/metering/plan.ts';
import { type Microseconds, US_PER_SECOND } from '../../core/time/instant.ts';
import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { writeRows } from './rows.ts';
import { toMonthStart, usageBucketsTarget } from './tables.ts';
import type { WriteAttempt } from './write-fence.ts';

/** The size of a mark: no size of a usage row. */
export const MARK = 'MARK';

export type UsageRows = { readonly rows: readonly BucketRow[]; readonly getVersion: (meterId: string) => number };

/** Writes all rows, a part for each of their months. */
export async function writeUsageRows(
  clickhouse: ClickHouseClient,
  { rows, getVersion }: UsageRows,
  attempt: WriteAttempt,
): Promise<void> {
  if (rows.length === 0) return;
  const months = new Set(rows.map((row) => toMonthStart(row.bucket_start_us)));
  // Behind the others: should the engine ever cut a block, the mark is in the last piece.
  const marked = [...rows, ...[...months].map((start_us) => buildWriterMark(attempt.writer, start_us))];
  const target = usageBucketsTarget((meterId) => (meterId === '' ? 0 : getVersion(meterId)), attempt.attempt);
  await writeRows(clickhouse, target, { rows: marked, attempt });
}

/** Those of the rows whose part has not arrived with any try of the writer from number `since` on. */
export async function findMissingUsageRows(
  clickhouse: ClickHouseClient,
  rows: readonly BucketRow[],
  { writer, since }: { writer: string; since: bigint },
): Promise<BucketRow[]> {
  const landed = await listStoredMonths(clickhouse, { writer, since });
  return rows.filter((row) => !landed.has(toMonthStart(row.bucket_start_us)));
}

/** The starts of the months, in microseconds, of which a part has arrived with a try from number `since` on. */
export async function listStoredMonths(
  clickhouse: ClickHouseClient,
  { writer, since }: { writer: string; since: bigint },
): Promise<Set<number>> {
  try {
    const answer = await clickhouse.query({
      query: `select toString(toUnixTimestamp64Second(bucket_start)) as start_s from usage_buckets
               where tenant_id = '' and environment_id = '' and meter_id = '' and meter_version = 0
                 and size = '${MARK}' and external_customer_id = '' and group_key = {writer:String}
               group by bucket_start having max(attempt) >= {since:UInt64}`,
      query_params: { writer, since },
      format: 'JSONEachRow',
    });
    return new Set((await answer.json<{ start_s: string }>()).map(({ start_s }) => Number(start_s) * US_PER_SECOND));
  } catch (error) {
    throw toClickHouseFailure('marks of usage rows', error);
  }
}

function buildWriterMark(writer: string, start_us: Microseconds): BucketRow {
  return {
    tenant_id: '',
    environment_id: '',
    meter_id: '',
    external_customer_id: '',
    // The store knows it as a label; nobody else meets a mark.
    size: MARK as BucketRow['size'],
    bucket_start_us: start_us,
    group_key: writer,
    first_us: null,
    last_us: null,
    count: 0,
    sum: 0n,
    weighted_sum: 0n,
    min: null,
    max: null,
    latest: null,
    uniques: [],
  };
}
