/** The progress of a partition as Postgres has it: what a consistent read starts from and is checked against. */
import type { Microseconds } from '../../core/time/instant.ts';

export type SlicePhase = 'idle' | 'raw' | 'buckets';

export type SliceState = {
  readonly partition: number;
  readonly epoch: bigint;
  /** Everything before it is in the stores. */
  readonly next_offset: bigint;
  /** The slice in progress, if any: after a crash it is run again with the same bounds. */
  readonly slice_from: bigint | null;
  readonly slice_to: bigint | null;
  readonly phase: SlicePhase;
  readonly watermark_us: Microseconds;
  /** CRC-32 of the body of the last record before `next_offset`; null when it is not known. */
  readonly last_record: number | null;
  /** Who has locked the bucket rows (storage/progress/bucket-lock.ts, also for the name); null while they are unlocked. */
  readonly gate: string | null;
  /** Grows with each rebuild of usage rows. */
  readonly rebuilds: bigint;
  /** Grows with each slice whose usage rows are of several months, as it begins to write them. */
  readonly wide_slices: bigint;
  /** The usage rows of the slice in progress, or of the last one, are of several months. */
  readonly is_wide: boolean;
  /** The UTC days (since 1970) before it have daily rollups, and whoever writes base rows of them writes daily rollups too. */
  readonly days_before: number;
};

export type OwnedPartition = { readonly partition: number; readonly epoch: bigint };

/** `days_before` of an installation whose daily rollups were written with every slice. */
export const EVERY_DAY = 2_147_483_647;

/** The same for all partitions. */
export function readDaysBefore(progress: readonly SliceState[]): number {
  return progress[0]?.days_before ?? 0;
}

/** Grows with each rebuild of usage rows, by whichever partition. */
export function sumRebuilds(progress: readonly SliceState[]): bigint {
  return progress.reduce((sum, state) => sum + state.rebuilds, 0n);
}

/** What `rebuildsOf` is, and what it will be when who has the bucket rows locked at this progress unlocks them: each partition counts. */
export function computeRebuildRange(progress: readonly SliceState[]): { before: bigint; after: bigint } {
  const before = sumRebuilds(progress);
  return { before, after: before + BigInt(progress.length) };
}

/** Everything before them is in the stores, by partition. */
export function nextOffsets(progress: readonly SliceState[]): Map<number, bigint> {
  return new Map(progress.map(({ partition, next_offset }) => [partition, next_offset]));
}

/** By partition, as they are kept in a record. */
export function toOffsetsText(offsets: ReadonlyMap<number, bigint>): Record<string, string> {
  return Object.fromEntries(Array.from(offsets, ([partition, offset]) => [String(partition), String(offset)]));
}

/** The columns of it, for a row that goes through JSON. */
export const STATE_COLUMNS = `partition, epoch::text, next_offset::text, slice_from::text, slice_to::text, phase, watermark_us::text,
  last_record::text, gate, rebuilds::text, wide_slices::text, is_wide, days_before`;

export function toSliceState(row: Record<string, string | number | boolean | null>): SliceState {
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
