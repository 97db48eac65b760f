/**
 * Makes the daily rollups of UTC days that are over (docs/decisions/0001). A day has only base rows until then. Afterwards every writer of
 * its base rows also writes daily rollups, and queries read these. One message in the log triggers the work, like a rebuild:
 *
 *   lock the bucket rows → no slice writes bucket rows → sum up the base rows, day by day → unlock: these days have rollups
 *
 * After a crash the next owner of the partition repeats the work under a greater attempt number. No query reads the rollups of a day
 * before it is done, so the next attempt deletes the rows of the failed one.
 */
import { FarthingError } from '../../../core/foundation/error.ts';
import type { WriteAttempt } from '../../../storage/events/write-fence.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { toPartitionWriter } from '../../../storage/progress/attempts.ts';
import {
  type BucketLockHolder,
  beginRebuild,
  lockBucketsWhenQuiet,
  returnBucketLock,
  unlockBuckets,
} from '../../../storage/progress/bucket-lock.ts';
import { hasUnsettledVersions } from '../../../storage/progress/meter-versions.ts';
import {
  computeRebuildRange,
  EVERY_DAY,
  type OwnedPartition,
  readDaysBefore,
} from '../../../storage/progress/partition-progress.ts';
import { updateDaysBefore } from '../../../storage/progress/slices.ts';
import { deleteDailyRollups, insertDailyRollups, listDaysWithBaseRows } from '../../../storage/usage/daily-rollups.ts';

type DailyRollupsRequest = {
  readonly owned_partition: OwnedPartition;
  /** Days since 1970; rollups are made for the days before it. */
  readonly days_before: number;
  /** Records that the message is processed, in the transaction that unlocks the bucket rows. */
  finish(transaction: Database): Promise<void>;
};

/**
 * Maximum number of base rows per message, because the locked bucket rows block all writers. The next message processes the remaining days.
 */
const BASE_ROWS_MAX = 3_000_000;

/** The day before which daily rollups exist now; `problem` says why further days could not be written. */
type DailyRollupsMade = { readonly days_before: number; readonly problem: Error | null };

export async function makeDailyRollups(stores: Stores, request: DailyRollupsRequest): Promise<DailyRollupsMade> {
  const { postgres } = stores;
  const holder: BucketLockHolder = { ...request.owned_partition, only_adds: true };
  const progress = await lockBucketsWhenQuiet(postgres, holder);
  const from = readDaysBefore(progress);
  const made = await makeRollups(stores, { ...request, holder, from }).catch(async (error) => {
    // If nothing was written, the lock is released. Otherwise the bucket rows stay locked for the next attempt.
    await returnBucketLock(postgres, holder);
    throw error;
  });
  // Rollups change no usage, so the announcement names no customers.
  stores.usage_cache?.announceRebuild({ ...computeRebuildRange(progress), customers: new Map() });
  await unlockBuckets(postgres, holder, async (transaction) => {
    await updateDaysBefore(transaction, made.days_before);
    await request.finish(transaction);
  });
  return made;
}

type MakeRollupsInput = DailyRollupsRequest & {
  readonly holder: BucketLockHolder;
  /** Days since 1970; daily rollups exist for the days before it. */
  readonly from: number;
};

async function makeRollups(stores: Stores, making: MakeRollupsInput): Promise<DailyRollupsMade> {
  const { holder, from } = making;
  // This installation has written rollups of all days, also of later ones. The later ones are ignored from now on, and the next attempt
  // deletes them.
  if (from === EVERY_DAY) return { days_before: making.days_before, problem: null };
  if (from >= making.days_before) return { days_before: from, problem: null };
  // No rollups are made during a back-fill, because it ignores the lock on the bucket rows. None can begin meanwhile: it would wait until
  // this partition reaches its barrier.
  if (await hasUnsettledVersions(stores.postgres)) return { days_before: from, problem: null };
  const own = {
    writer: toPartitionWriter(holder.partition),
    attempt: (await beginRebuild(stores.postgres, holder)).attempt,
  };
  let days_before = from;
  try {
    for await (const made of makeRollupDays(stores, making, own)) days_before = made;
  } catch (error) {
    // Daily rollups are optional: a write error of the engine must not block the log. An unavailable store is retried.
    if (error instanceof FarthingError && error.code === 'database_error') return { days_before, problem: error };
    throw error;
  }
  return { days_before, problem: null };
}

/** Yields the day before which daily rollups exist, after each completed day. */
async function* makeRollupDays(
  { clickhouse }: Stores,
  { from, days_before: until }: MakeRollupsInput,
  own: WriteAttempt,
): AsyncGenerator<number> {
  await deleteDailyRollups(clickhouse, from, own.attempt);
  let rows = 0;
  for (const { day, base_rows } of await listDaysWithBaseRows(clickhouse, { from, until })) {
    if (rows > 0 && rows + base_rows > BASE_ROWS_MAX) return;
    rows += base_rows;
    await insertDailyRollups(clickhouse, day, own);
    yield day + 1;
  }
  yield until;
}
