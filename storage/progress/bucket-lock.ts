/**
 * The lock on the bucket rows (the pre-aggregated rows). A bucket row combines several partitions, so a process that rewrites rows must
 * know exactly which events they contain. It locks the bucket rows of all partitions and waits until no slice is being written. Then every
 * row contains exactly the events before the partitions' `next_offset`. The lock is a column in the row of every partition, so that
 * Postgres serializes the lock with new slices. A process that changes more than one row first takes an advisory lock, which prevents
 * deadlocks. The columns retain their original names, `gate`, `gate_until` and `gate_attempt`, from the migrations.
 *
 * A rebuild belongs to the partition that read its message from the log, and is fenced by its epoch. After a crash the next owner finds the
 * bucket rows locked in its own name and repeats the work with a greater number. A lock for reading expires by itself.
 */
import { unavailable } from '../../core/foundation/error.ts';
import type { Database } from '../foundation/stores.ts';
import { type OwnedPartition, type PartitionProgress } from './partition-progress.ts';
import { FencedError, readProgress, serializeBucketLockChanges } from './slices.ts';

/** Holder of the lock. With `only_adds` existing rows remain, and readers need not wait. */
export type BucketLockHolder = OwnedPartition & { readonly only_adds?: boolean };

function toHolderName({ partition, only_adds }: BucketLockHolder): string {
  return `${only_adds ? 'adding' : 'partition'}:${partition}`;
}

const QUIET_WITHIN_MS = 5_000;
const LOCKED_WITHIN_MS = 10_000;
const PAUSE_MS = 10;

/** Locks the bucket rows for the owner of a partition, and returns the progress at a moment at which no slice writes bucket rows. */
export async function lockBucketsWhenQuiet(database: Database, holder: BucketLockHolder): Promise<PartitionProgress[]> {
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
    if (performance.now() > until) throw unavailable('the lock on the bucket rows');
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Tries to take the lock; false if another holder has it. */
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
 * Begins to delete and write rows. Returns an attempt number that is greater than that of every existing row, and smaller than that of
 * every row written after the unlock. A delete of earlier attempts therefore never deletes other rows, however late it runs. `since`:
 * number of the first attempt under this lock.
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
 * Unlocks the bucket rows in one transaction with `finish`, which ends the holder's slice and is fenced. A partition that is added
 * meanwhile is either unlocked too, or sees the writes of `finish`.
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

/** Releases the lock if nothing was written under it, so that no slice waits until the next attempt. */
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

/** Returns the progress of all partitions at a moment at which none of them, except `own`, writes bucket rows. */
async function untilQuiet(database: Database, own?: number): Promise<PartitionProgress[]> {
  const until = performance.now() + QUIET_WITHIN_MS;
  for (;;) {
    const progress = await readProgress(database);
    if (progress.every((state) => state.phase !== 'buckets' || state.partition === own)) return progress;
    if (performance.now() > until) throw unavailable('the bucket rows (a slice is being written)');
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Must run in a transaction: no other holder can lock the bucket rows before it ends. */
export async function isBucketLockFree(transaction: Database): Promise<boolean> {
  return (await lockAll(transaction)).every((row) => !isTaken(row, ''));
}

/** Locks the bucket rows for `read`, so that they contain exactly the events before the progress. `read` must not write bucket rows. */
export async function withBucketsLockedForReading<T>(
  database: Database,
  { name, seconds_max }: { name: string; seconds_max: number },
  read: (progress: PartitionProgress[]) => Promise<T>,
): Promise<T> {
  const mine = `reading:${name}`;
  await untilLocked(database, mine, seconds_max);
  try {
    const value = await read(await untilQuiet(database));
    const { rows } = await database.raw(`select count(*)::int as held from slices where gate = ?`, [mine]);
    if (rows[0].held === 0) throw unavailable('the lock on the bucket rows (the reading took too long)');
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
    if (tries * PAUSE_MS > QUIET_WITHIN_MS) throw unavailable('the lock on the bucket rows');
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

/** Whether another holder has locked the rows. A lock for reading that has expired does not count; its holder detects the loss. */
function isTaken({ gate, gate_until, now_s }: LockRow, mine: string): boolean {
  if (gate === null || gate === mine) return false;
  return !(gate.startsWith('reading:') && Number(gate_until) < Number(now_s));
}
