/**
 * Makes the daily rollups of UTC days that are over (docs/decisions/0001). Until then a day has base rows only; from then on
 * whoever writes base rows of it writes daily rollups too, and questions read them. It is the effect of one message in the log,
 * like a rebuild:
 *
 *   lock the bucket rows → no slice is in its bucket rows → sum up the base rows, day by day → unlock: these days have rollups
 *
 * After a crash the next owner of the partition does it again, under a greater number. Nobody reads daily rollups of a day before
 * it is done, so what a try left is taken away by the next.
 */
import { FarthingError } from '../../core/error.ts';
import type { WriteAttempt } from '../../storage/events/write-fence.ts';
import { toPartitionWriter } from '../../storage/progress/attempts.ts';
import {
  type BucketLockHolder,
  beginRebuild,
  lockBucketsWhenQuiet,
  returnBucketLock,
  unlockBuckets,
} from '../../storage/progress/bucket-lock.ts';
import { hasUnsettledVersions } from '../../storage/progress/meter-versions.ts';
import {
  computeRebuildRange,
  EVERY_DAY,
  type OwnedPartition,
  readDaysBefore,
} from '../../storage/progress/slice-state.ts';
import { updateDaysBefore } from '../../storage/progress/slices.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { deleteDailyRollups, insertDailyRollups, listDaysWithBaseRows } from '../../storage/usage/daily-rollups.ts';

export type DailyRollupsRequest = {
  readonly held: OwnedPartition;
  /** Days since 1970: daily rollups for the days before it. */
  readonly days_before: number;
  /** Records the end, in the transaction that unlocks the bucket rows. */
  finish(transaction: Database): Promise<void>;
};

/** While the bucket rows are locked nobody writes any: beyond so many base rows the days are left for the next message. */
const BASE_ROWS_MAX = 3_000_000;

/** What came of it: before which day there are daily rollups now, and why there are not more, where they could not be written. */
export type DailyRollupsMade = { readonly days_before: number; readonly problem: Error | null };

export async function makeDailyRollups(stores: Stores, request: DailyRollupsRequest): Promise<DailyRollupsMade> {
  const { postgres } = stores;
  const holder: BucketLockHolder = { ...request.held, only_adds: true };
  const progress = await lockBucketsWhenQuiet(postgres, holder);
  const from = readDaysBefore(progress);
  const made = await makeRollups(stores, { ...request, holder, from }).catch(async (error) => {
    // Before anything was written the lock is given back; after, the bucket rows stay locked for the next try.
    await returnBucketLock(postgres, holder);
    throw error;
  });
  // What rows say together stays the same.
  stores.usage_memory?.comingRebuild({ ...computeRebuildRange(progress), customers: new Map() });
  await unlockBuckets(postgres, holder, async (transaction) => {
    await updateDaysBefore(transaction, made.days_before);
    await request.finish(transaction);
  });
  return made;
}

type MakeRollupsInput = DailyRollupsRequest & {
  readonly holder: BucketLockHolder;
  /** Days since 1970: before it there are daily rollups already. */
  readonly from: number;
};

async function makeRollups(stores: Stores, making: MakeRollupsInput): Promise<DailyRollupsMade> {
  const { holder, from } = making;
  // Those of later days are there as well: from now on they count for nothing, and the next try takes them away.
  if (from === EVERY_DAY) return { days_before: making.days_before, problem: null };
  if (from >= making.days_before) return { days_before: from, problem: null };
  // A back-fill does not heed the lock on the bucket rows, and cannot begin while we are at it: it waits for this partition
  // to meet its barrier.
  if (await hasUnsettledVersions(stores.postgres)) return { days_before: from, problem: null };
  const own = {
    writer: toPartitionWriter(holder.partition),
    attempt: (await beginRebuild(stores.postgres, holder)).attempt,
  };
  let days_before = from;
  try {
    for await (const made of makeRollupDays(stores, making, own)) days_before = made;
  } catch (error) {
    // Nothing depends on daily rollups: what the engine refuses must not hold up the log. A store that is away is waited for.
    if (error instanceof FarthingError && error.code === 'database_error') return { days_before, problem: error };
    throw error;
  }
  return { days_before, problem: null };
}

/** Before which day there are daily rollups, each time that one more is whole. */
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
