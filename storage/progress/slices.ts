/**
 * The pipeline's progress per partition; Postgres is authoritative. It has the slice in progress, the offset of the stores, and the numbers
 * of write attempts. Its epoch fences a worker that has lost the partition (ARCHITECTURE.md, "Exactly once").
 */
import { unavailable } from '../../core/foundation/error.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import { KeyedBatchLoader } from '../concurrency/batch-loader.ts';
import type { Database } from '../foundation/stores.ts';
import { IN_NO_ANSWER } from '../postgres/interceptors/own-writes.ts';
import { type OwnedPartition, type PartitionProgress, toPartitionProgress } from './partition-progress.ts';

/** Thrown if another worker has taken the partition over: drop all state, write nothing. */
export class FencedError extends Error {
  constructor(partition: number) {
    super(`partition ${partition} belongs to another worker now`);
    this.name = 'FencedError';
  }
}

/** Takes the partition over: afterwards every older epoch is fenced. An existing lock on the bucket rows also applies to the new owner. */
export async function takePartition(database: Database, partition: number, owner: string): Promise<PartitionProgress> {
  return database.transaction(async (transaction) => {
    await serializeBucketLockChanges(transaction);
    const { rows } = await transaction.raw(
      `insert into slices (partition, epoch, owner, gate, days_before)
       values (?, 1, ?, (select gate from slices where gate is not null limit 1),
               (select coalesce(max(days_before), 0) from slices))
       on conflict (partition) do update set epoch = slices.epoch + 1, owner = excluded.owner, updated_at = now()
       returning *`,
      [partition, owner],
    );
    return toPartitionProgress(rows[0]);
  });
}

const BUCKET_LOCK_KEY = 7_155_021;

/** Serializes changes of the bucket lock with new partitions, so that the lock misses no partition. */
export async function serializeBucketLockChanges(transaction: Database): Promise<void> {
  await transaction.raw(`select pg_advisory_xact_lock(?)`, [BUCKET_LOCK_KEY]);
}

type SlicePlan = {
  /** Number of this attempt, greater than that of every earlier attempt of any worker. */
  readonly attempt: bigint;
  /** True if an earlier attempt planned the slice, and may have written a part of it. */
  readonly again: boolean;
  /** True if the slice was finished before, and only the answer to the caller was lost. */
  readonly done: boolean;
};

/** Thrown if a slice does not begin at the offset of the stores. No event is at fault, and none may be skipped. */
export class SliceOrderError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SliceOrderError';
  }
}

/**
 * Records the bounds before any write. A planned slice is planned again with the same bounds, and begins at the offset of the stores. Any
 * other bounds would skip events, and are rejected here.
 */
export async function planSlice(
  database: Database,
  owned_partition: OwnedPartition,
  slice: { from: bigint; to: bigint },
): Promise<SlicePlan> {
  const { rows } = await database.raw(
    `update slices s
        set slice_from = :from, slice_to = :to, updated_at = now(), attempt = next.attempt,
            phase = case when before.again then s.phase else 'raw' end
       from (select partition, slice_from is not null as again from slices where partition = :partition) as before,
            (select nextval('write_attempts') as attempt) as next
      where s.partition = before.partition and s.epoch = :epoch and s.next_offset = :from
        and (s.slice_from is null or (s.slice_from = :from and s.slice_to = :to))
     returning s.attempt::text, before.again ${IN_NO_ANSWER}`,
    {
      from: String(slice.from),
      to: String(slice.to),
      partition: owned_partition.partition,
      epoch: String(owned_partition.epoch),
    },
  );
  if (rows.length === 1) return { attempt: BigInt(rows[0].attempt), again: rows[0].again, done: false };
  if (await isFinished(database, owned_partition, slice)) return { attempt: 0n, again: true, done: true };
  throw await explainRejectedSlice(database, owned_partition, slice);
}

/**
 * Whether an earlier attempt of this owner has finished the slice: while the epoch is unchanged, only the owner
 * advances the offset.
 */
async function isFinished(
  database: Database,
  owned_partition: OwnedPartition,
  { to }: { to: bigint },
): Promise<boolean> {
  const state = await loadPartitionProgress(database, owned_partition.partition);
  return state?.epoch === owned_partition.epoch && state.slice_from === null && state.next_offset >= to;
}

async function loadPartitionProgress(database: Database, partition: number): Promise<PartitionProgress | undefined> {
  return (await readProgress(database)).find((state) => state.partition === partition);
}

/** Explains why a slice was rejected: the worker was fenced, or the slice would leave a gap. */
async function explainRejectedSlice(
  database: Database,
  owned_partition: OwnedPartition,
  { from, to }: { from: bigint; to: bigint },
): Promise<Error> {
  const state = await loadPartitionProgress(database, owned_partition.partition);
  if (state?.epoch !== owned_partition.epoch) return new FencedError(owned_partition.partition);
  const planned = state.slice_from === null ? '' : `, and [${state.slice_from}, ${state.slice_to}) is in progress`;
  return new SliceOrderError(
    `partition ${owned_partition.partition}: a slice [${from}, ${to}) was to be written where the stores end at ${state.next_offset}${planned}`,
  );
}

/** Must run in a transaction: throws if the partition belongs to another worker, and locks it until the end. */
export async function proveOwner(transaction: Database, { partition, epoch }: OwnedPartition): Promise<void> {
  const { rows } = await transaction.raw(`select 1 from slices where partition = ? and epoch = ? for update`, [
    partition,
    String(epoch),
  ]);
  if (rows.length === 0) throw new FencedError(partition);
}

const UNLOCKED_WITHIN_MS = 5_000;
const PAUSE_MS = 20;

type BucketsEntered = {
  /** Number under which bucket rows are written, greater than that of every finished rebuild. */
  readonly attempt: bigint;
  /** Attempts from this number on may have written bucket rows of this slice. */
  readonly rows_since: bigint;
  /** Days with daily rollups, fixed until the slice is finished: a change needs the bucket lock, which waits for the slice. */
  readonly days_before: number;
};

/** Begins to write the bucket rows of the slice; waits for a limited time if they are locked. */
export async function enterBuckets(
  database: Database,
  owned_partition: OwnedPartition,
  { is_wide }: { is_wide: boolean },
): Promise<BucketsEntered> {
  const until = performance.now() + UNLOCKED_WITHIN_MS;
  for (;;) {
    const answer = await database.raw(
      `update slices s set phase = 'buckets', updated_at = now(), attempt = next.attempt,
              rows_since = coalesce(s.rows_since, next.attempt), is_wide = ?,
              wide_slices = s.wide_slices + case when ? then 1 else 0 end
         from (select nextval('write_attempts') as attempt) as next
        where s.partition = ? and s.epoch = ?
          and (s.phase = 'buckets' or s.gate is null
               or (s.gate like 'reading:%' and s.gate_until < extract(epoch from now())::bigint))
        returning s.attempt::text, s.rows_since::text, s.days_before ${IN_NO_ANSWER}`,
      [is_wide, is_wide, owned_partition.partition, String(owned_partition.epoch)],
    );
    if (answer.rowCount === 1) {
      const { attempt, rows_since, days_before } = answer.rows[0];
      return { attempt: BigInt(attempt), rows_since: BigInt(rows_since), days_before };
    }
    const { rows } = await database.raw(`select 1 from slices where partition = ? and epoch = ?`, [
      owned_partition.partition,
      String(owned_partition.epoch),
    ]);
    if (rows.length === 0) throw new FencedError(owned_partition.partition);
    if (performance.now() > until) throw unavailable('the bucket rows (they are being rebuilt)');
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Number of events of some records by outcome, for the table `slice_ledger`. Every event has exactly one outcome. */
export type SliceCounts = {
  readonly events: number;
  readonly stored: number;
  readonly duplicates: number;
  readonly conflicts: number;
  readonly dead_letters: number;
  /** Further events of unparseable records: each such record counts as one dead letter, however many events it has. */
  readonly unread: number;
};

export const NO_EVENTS: SliceCounts = {
  events: 0,
  stored: 0,
  duplicates: 0,
  conflicts: 0,
  dead_letters: 0,
  unread: 0,
};

export type FinishedSlice = {
  readonly from: bigint;
  readonly next_offset: bigint;
  readonly watermark_us: Microseconds;
  /** CRC-32 of the body of the last record. */
  readonly last_record: number;
  readonly counts: SliceCounts;
  /** Added rows for subscribers (slice-notifications.ts); null if there are none. */
  readonly notification: string | null;
};

/** Number of events after which the ledger begins a new range. */
const LEDGER_EVENTS_MAX = 1_000_000;

/** Advances `next_offset` and adds the records to the ledger in one statement. */
export async function finishSlice(
  database: Database,
  owned_partition: OwnedPartition,
  finished: FinishedSlice,
): Promise<void> {
  const { rows } = await database.raw(FINISH, {
    ...finished.counts,
    partition: owned_partition.partition,
    epoch: String(owned_partition.epoch),
    from: String(finished.from),
    to: String(finished.next_offset),
    watermark_us: finished.watermark_us,
    last_record: finished.last_record,
    notification: finished.notification,
  });
  if (rows[0].done !== 1)
    throw await explainRejectedSlice(database, owned_partition, { from: finished.from, to: finished.next_offset });
}

const FINISH = `
  with done as (
    update slices set next_offset = :to::bigint, watermark_us = greatest(watermark_us, :watermark_us::bigint),
           last_record = :last_record::bigint,
           slice_from = null, slice_to = null, phase = 'idle', rows_since = null, updated_at = now()
     where partition = :partition and epoch = :epoch and next_offset = :from::bigint
       and coalesce(slice_to, :to::bigint) = :to::bigint
    returning partition),
  entered as (
    update slice_ledger l set to_offset = :to::bigint, records = l.records + :to::bigint - :from::bigint,
           events = l.events + :events::bigint, stored = l.stored + :stored::bigint,
           duplicates = l.duplicates + :duplicates::bigint, conflicts = l.conflicts + :conflicts::bigint,
           dead_letters = l.dead_letters + :dead_letters::bigint, unread = l.unread + :unread::bigint
      from done where l.partition = done.partition and l.to_offset = :from::bigint and l.events < ${LEDGER_EVENTS_MAX}
    returning l.partition),
  begun as (
    insert into slice_ledger (partition, from_offset, to_offset, records, events, stored, duplicates, conflicts,
                              dead_letters, unread)
    select partition, :from::bigint, :to::bigint, :to::bigint - :from::bigint, :events::bigint, :stored::bigint,
           :duplicates::bigint, :conflicts::bigint, :dead_letters::bigint, :unread::bigint
      from done where not exists (select from entered)
    returning partition),
  notified as (
    insert into told_slices (partition, epoch, from_offset, to_offset, rows)
    select partition, :epoch::bigint, :from::bigint, :to::bigint, :notification::text from done where :notification::text is not null
        on conflict (partition, from_offset) do update
       set epoch = excluded.epoch, to_offset = excluded.to_offset, rows = excluded.rows, told_at = now()),
  forgotten as (
    delete from told_slices using done
     where told_slices.partition = done.partition and :notification::text is not null and told_at < now() - interval '1 minute')
  select (select count(*) from done)::int as done, (select count(*) from begun)::int as begun ${IN_NO_ANSWER}`;

/** Must run in the transaction that unlocks the bucket rows (storage/progress/bucket-lock.ts). */
export async function updateDaysBefore(transaction: Database, days_before: number): Promise<void> {
  await transaction.raw(`update slices set days_before = ?`, [days_before]);
}

/** Reads the progress of every partition: the start of a consistent read, and the state that the read is checked against. */
export async function readProgress(database: Database): Promise<PartitionProgress[]> {
  const { rows } = await database.raw(`select * from slices order by partition`);
  return rows.map(toPartitionProgress);
}

const SOON = new KeyedBatchLoader<Database, void, PartitionProgress[]>(async (database, requests) => {
  const progress = await readProgress(database);
  return requests.map(() => progress);
});

/** Loads progress that is read after the call; concurrent callers share one read. */
export const loadSharedProgress = (database: Database): Promise<PartitionProgress[]> => SOON.load(database);
