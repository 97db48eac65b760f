/** Progress of a partition in Postgres: the start of a consistent read, and the state that the read is checked against. */
import type { Microseconds } from '../../core/foundation/time/instant.ts';

type SlicePhase = 'idle' | 'raw' | 'buckets';

export type PartitionProgress = {
  readonly partition: number;
  readonly epoch: bigint;
  /** Everything before this offset is in the stores. */
  readonly next_offset: bigint;
  /** The slice in progress, if any; after a crash it runs again with the same bounds. */
  readonly slice_from: bigint | null;
  readonly slice_to: bigint | null;
  readonly phase: SlicePhase;
  readonly watermark_us: Microseconds;
  /** CRC-32 of the body of the last record before `next_offset`; null if unknown. */
  readonly last_record: number | null;
  /**
   * Holder of the lock on the bucket rows (storage/progress/bucket-lock.ts, which also explains the name); null while they are unlocked.
   */
  readonly gate: string | null;
  /** Increases with each rebuild of bucket rows. */
  readonly rebuilds: bigint;
  /**
   * Increases when a slice begins to write bucket rows of several months. Each month becomes visible separately, so a read during which
   * this number changes may see only some of the months.
   */
  readonly wide_slices: bigint;
  /** Whether the bucket rows of the slice in progress, or of the last one, are in several months. */
  readonly is_wide: boolean;
  /** UTC days before this one (since 1970) have daily rollups; a writer of their base rows also writes daily rollups. */
  readonly days_before: number;
};

/** Part of the progress that caches follow. */
export type PartitionPosition = Pick<PartitionProgress, 'partition' | 'epoch' | 'next_offset' | 'rebuilds'>;

export type OwnedPartition = { readonly partition: number; readonly epoch: bigint };

/** Value of `days_before` in an installation that writes daily rollups with every slice. */
export const EVERY_DAY = 2_147_483_647;

/** Returns `days_before`, which is equal in all partitions. */
export function readDaysBefore(progress: readonly PartitionProgress[]): number {
  return progress[0]?.days_before ?? 0;
}

/** Returns a number that increases with each rebuild of bucket rows by any partition. */
export function sumRebuilds(progress: readonly Pick<PartitionProgress, 'rebuilds'>[]): bigint {
  return progress.reduce((sum, state) => sum + state.rebuilds, 0n);
}

/** Returns `sumRebuilds` now, and after the holder of the bucket lock unlocks at this progress: the unlock increments every partition. */
export function computeRebuildRange(progress: readonly PartitionProgress[]): { before: bigint; after: bigint } {
  const before = sumRebuilds(progress);
  return { before, after: before + BigInt(progress.length) };
}

/** Returns the next offset of each partition: everything before it is in the stores. */
export function nextOffsets(progress: readonly PartitionProgress[]): Map<number, bigint> {
  return new Map(progress.map(({ partition, next_offset }) => [partition, next_offset]));
}

/** Converts the offsets by partition to the format that records store. */
export function toOffsetsText(offsets: ReadonlyMap<number, bigint>): Record<string, string> {
  return Object.fromEntries(Array.from(offsets, ([partition, offset]) => [String(partition), String(offset)]));
}

export function toPartitionProgress(row: Record<string, string | number | boolean | null>): PartitionProgress {
  const offset = (value: string | number | boolean | null | undefined) =>
    value === null || value === undefined ? null : BigInt(value);
  return {
    partition: Number(row.partition),
    epoch: BigInt(row.epoch as string),
    next_offset: BigInt(row.next_offset as string),
    slice_from: offset(row.slice_from),
    slice_to: offset(row.slice_to),
    phase: row.phase as SlicePhase,
    watermark_us: Number(row.watermark_us),
    last_record: row.last_record === null || row.last_record === undefined ? null : Number(row.last_record),
    gate: row.gate as string | null,
    rebuilds: BigInt((row.rebuilds as string | null) ?? 0),
    wide_slices: BigInt((row.wide_slices as string | null) ?? 0),
    is_wide: row.is_wide === true,
    days_before: Number(row.days_before),
  };
}
