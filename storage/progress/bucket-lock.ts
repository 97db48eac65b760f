/**
 * The lock on the bucket rows, the pre-aggregated ones. A bucket row holds what several partitions contributed, so whoever
 * takes rows away to write them anew must know exactly what is in them: it locks the bucket rows of all partitions, waits
 * until no slice is between the beginning and the end of its own, and then every row holds what stands before the
 * partitions' `next_offset`. The lock is a column in the row of every partition, so that Postgres orders who takes it and
 * which slice begins; whoever changes more than one row takes its turn first, or two of them could each wait for the other.
 * The columns keep the names they were given, `gate`, `gate_until` and `gate_attempt`: the migrations that made them stand.
 *
 * A rebuild belongs to the partition that met its message in the log and is fenced by its epoch: after a crash the next
 * owner finds the bucket rows locked in its own name and does the work again, under a greater number. A lock for reading
 * only ends by itself.
 */
import { unavailable } from '../../core/error.ts';
import type { Database } from '../stores.ts';
import { type OwnedPartition, type SliceState } from './slice-state.ts';
import { FencedError, readProgress, serializeBucketLockChanges } from './slices.ts';

/** Who locks the bucket rows; with `only_adds` the rows that are there stay, and whoever reads them need not wait. */
export type BucketLockHolder = OwnedPartition & { readonly only_adds?: boolean };

function toHolderName({ partition, only_adds }: BucketLockHolder): string {
  return `${only_adds ? 'adding' : 'partition'}:${partition}`;
}

const QUIET_WITHIN_MS = 5_000;
const LOCKED_WITHIN_MS = 10_000;
const PAUSE_MS = 10;

/** Locks the bucket rows for the owner of a partition, and answers the progress at a moment at which nobody writes bucket rows. */
export async function lockBucketsWhenQuiet(database: Database, holder: BucketLockHolder): Promise<SliceState[]> {
  await lockBuckets(database, holder);
  try {
    return await untilQuiet(database, holder.partition);
  } catch (error) {
    await returnBucketLock(database, holder);
    throw error;
  }
}

export async function lockBuckets(database: Database, holder: BucketLockHolder): Promise<void> {
  const until = performance.now() + LOCKED_WITHIN_MS;
  while (!(await tryToLock(database, holder))) {
    if (performance.now() > until) throw unavailable('the lock on the usage rows');
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** False while somebody else has it. */
async function tryToLock(database: Database, holder: BucketLockHolder): Promise<boolean> {
  const mine = toHolderName(holder);
  return database.transaction(async (transaction) => {
    const rows = await lockAll(transaction);
    const own = rows.find((row) => row.partition === holder.partition);
    if (own?.epoch !== String(holder.epoch)) throw new FencedError(holder.partition);
    if (rows.some((row) => isTaken(row, mine))) return false;
    await transaction.raw(`update slices set gate = ?, gate_until = null where gate is distinct from ?`, [mine, mine]);
    return true;
  });
}

/**
 * From here on rows are taken away and written. Answers the number of the try: it is greater than that of every row that is
 * there, and smaller than that of every row that is written once the bucket rows are unlocked, so a delete that says "of earlier
 * tries" takes nothing else, however late it is carried out. `since`: the number of the first try under this lock.
 */
export async function beginRebuild(
  database: Database,
  holder: BucketLockHolder,
): Promise<{ readonly attempt: bigint; readonly since: bigint }> {
  const { rows } = await database.raw(
    `update slices s set attempt = next.attempt, gate_attempt = coalesce(s.gate_attempt, next.attempt)
       from (select nextval('write_attempts') as attempt) as next
      where s.partition = ? and s.epoch = ? and s.gate = ? returning s.attempt::text, s.gate_attempt::text`,
    [holder.partition, String(holder.epoch), toHolderName(holder)],
  );
  if (rows.length !== 1) throw new FencedError(holder.partition);
  return { attempt: BigInt(rows[0].attempt), since: BigInt(rows[0].gate_attempt) };
}

/**
 * Unlocks the bucket rows in one transaction with `finish`, which ends the holder's slice and is fenced. A partition that
 * is added meanwhile comes before it, and is unlocked too, or after it, and finds what `finish` has written.
 */
export async function unlockBuckets(
  database: Database,
  holder: BucketLockHolder,
  finish: (transaction: Database) => Promise<void>,
): Promise<void> {
  await database.transaction(async (transaction) => {
    await serializeBucketLockChanges(transaction);
    await finish(transaction);
    await transaction.raw(
      `update slices set gate = null, gate_until = null, gate_attempt = null, rebuilds = rebuilds + 1 where gate = ?`,
      [toHolderName(holder)],
    );
  });
}

/** Gives the lock back when nothing was written under it: nobody is held up until the next try. */
export async function returnBucketLock(database: Database, holder: BucketLockHolder): Promise<void> {
  await database.transaction(async (transaction) => {
    await serializeBucketLockChanges(transaction);
    await transaction.raw(
      `update slices set gate = null where gate = ?
          and exists (select 1 from slices where partition = ? and epoch = ?)
          and not exists (select 1 from slices where gate = ? and (gate_attempt is not null or gate_until is not null))`,
      [toHolderName(holder), holder.partition, String(holder.epoch), toHolderName(holder)],
    );
  });
}

/** The progress of all partitions at a moment at which none of them writes bucket rows, `own` aside. */
async function untilQuiet(database: Database, own?: number): Promise<SliceState[]> {
  const until = performance.now() + QUIET_WITHIN_MS;
  for (;;) {
    const progress = await readProgress(database);
    if (progress.every((state) => state.phase !== 'buckets' || state.partition === own)) return progress;
    if (performance.now() > until) throw unavailable('the usage rows (a slice is being written)');
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Inside a transaction: nobody locks the bucket rows before its end. */
export async function isBucketLockFree(transaction: Database): Promise<boolean> {
  return (await lockAll(transaction)).every((row) => !isTaken(row, ''));
}

/** Reads with the bucket rows locked, so that what is read fits the progress to the event. Writes must not be made here. */
export async function withBucketsLockedForReading<T>(
  database: Database,
  { name, seconds_max }: { name: string; seconds_max: number },
  read: (progress: SliceState[]) => Promise<T>,
): Promise<T> {
  const mine = `reading:${name}`;
  await untilLocked(database, mine, seconds_max);
  try {
    const value = await read(await untilQuiet(database));
    const { rows } = await database.raw(`select count(*)::int as held from slices where gate = ?`, [mine]);
    if (rows[0].held === 0) throw unavailable('the lock on the usage rows (the reading took too long)');
    return value;
  } finally {
    await database.transaction(async (transaction) => {
      await serializeBucketLockChanges(transaction);
      await transaction.raw(`update slices set gate = null, gate_until = null where gate = ?`, [mine]);
    });
  }
}

async function untilLocked(database: Database, mine: string, seconds_max: number): Promise<void> {
  for (let tries = 0; ; tries++) {
    const locked = await database.transaction(async (transaction) => {
      const rows = await lockAll(transaction);
      if (rows.some((row) => isTaken(row, mine))) return false;
      await transaction.raw(`update slices set gate = ?, gate_until = extract(epoch from now())::bigint + ?`, [
        mine,
        seconds_max,
      ]);
      return true;
    });
    if (locked) return;
    if (tries * PAUSE_MS > QUIET_WITHIN_MS) throw unavailable('the lock on the usage rows');
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

type LockRow = { partition: number; epoch: string; gate: string | null; gate_until: string | null; now_s: string };

async function lockAll(transaction: Database): Promise<LockRow[]> {
  await serializeBucketLockChanges(transaction);
  const { rows } = await transaction.raw(
    `select partition, epoch, gate, gate_until, extract(epoch from now())::bigint as now_s
       from slices order by partition for update`,
  );
  return rows;
}

/** A lock for reading whose time is over holds nobody up: its reader finds that it has lost it. */
function isTaken({ gate, gate_until, now_s }: LockRow, mine: string): boolean {
  if (gate === null || gate === mine) return false;
  return !(gate.startsWith('reading:') && Number(gate_until) < Number(now_s));
}
