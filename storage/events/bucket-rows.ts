/**
 * Bucket rows merge with those of other slices, so a slice cannot be recognized in them later. Therefore every part that an attempt writes
 * contains a *mark*: a row with the writer's name and the number of the attempt. A part arrives completely or not at all, and marks of a
 * writer merge to the greatest number. So the marks always show which parts arrived (docs/decisions/0002).
 */

import { type Microseconds, US_PER_SECOND } from '../../core/foundation/time/instant.ts';
import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { writeRows } from './rows.ts';
import { bucketRowsTarget, toMonthStart } from './tables.ts';
import type { WriteAttempt } from './write-fence.ts';

/** Value of the column `size` in a mark; no bucket row has it. */
export const MARK = 'MARK';

type VersionedBucketRows = { readonly rows: readonly BucketRow[]; readonly getVersion: (meterId: string) => number };

/** Writes all rows, one part per month. */
export async function writeBucketRows(
  clickhouse: ClickHouseClient,
  { rows, getVersion }: VersionedBucketRows,
  attempt: WriteAttempt,
): Promise<void> {
  if (rows.length === 0) return;
  const months = new Set(rows.map((row) => toMonthStart(row.bucket_start_us)));
  // The marks come last: if the engine ever divides a block, they are in the last piece.
  const marked = [...rows, ...[...months].map((start_us) => buildWriterMark(attempt.writer, start_us))];
  const target = bucketRowsTarget((meterId) => (meterId === '' ? 0 : getVersion(meterId)), attempt.attempt);
  await writeRows(clickhouse, target, { rows: marked, attempt });
}

/** Finds the rows whose part has not arrived with any attempt of the writer from number `since` on. */
export async function findMissingBucketRows(
  clickhouse: ClickHouseClient,
  rows: readonly BucketRow[],
  { writer, since }: { writer: string; since: bigint },
): Promise<BucketRow[]> {
  const landed = await listStoredMonths(clickhouse, { writer, since });
  return rows.filter((row) => !landed.has(toMonthStart(row.bucket_start_us)));
}

/** Starts of the months, in microseconds, whose part has arrived with an attempt from number `since` on. */
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
    throw toClickHouseFailure('marks of bucket rows', error);
  }
}

function buildWriterMark(writer: string, start_us: Microseconds): BucketRow {
  return {
    tenant_id: '',
    environment_id: '',
    meter_id: '',
    external_customer_id: '',
    // The column stores labels, and a mark is one more label. No query of bucket rows reads marks.
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
