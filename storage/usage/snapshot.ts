/**
 * Reads exact usage while data arrive. The rows of a slice reach `usage_buckets` in one part per month, so each month of a slice is visible
 * completely or not at all. Raw rows are read up to the offset that the stores had finished. If the offset of a partition advanced during
 * the read, its slice is in doubt: the rows may or may not contain it. A doubt matters only if that slice has an event in the unaligned
 * edges. In that rare case the read is repeated. While rows are rebuilt after a correction they are unusable: the read waits, and finally
 * reads raw rows alone. If the meter changed during the read, the caller must repeat the query, because the rows may be of two versions.
 */
import { nextOffsets, type PartitionProgress, readDaysBefore, sumRebuilds } from '../progress/partition-progress.ts';

export type Snapshot = {
  readonly before: ReadonlyMap<number, bigint>;
  /** UTC days before this one have daily rollups. Days that are rolled up during the read leave their base rows in place. */
  readonly days_before: number;
};

/** Offsets of a partition that the read may have seen in one of the two stores and not in the other. */
export type Doubt = {
  readonly partition: number;
  readonly from: bigint;
  readonly to: bigint;
  /** The offsets include bucket rows of several months, which do not arrive atomically. */
  readonly is_wide: boolean;
};

/**
 * - "certain": the result is of the moment of the given progress, whatever arrived since.
 * - "unless rebuilt": likewise, unless rows were rebuilt since, because raw events then count differently.
 * - "open": must be checked.
 */
export type Certainty = 'certain' | 'unless rebuilt' | 'open';

export type SnapshotRead<T> = {
  /** Reads the progress of the stores; null if the counter changed. */
  progress(): Promise<readonly PartitionProgress[] | null>;
  /** Reads the value from the aggregated buckets, and from raw rows only up to the snapshot's offsets. */
  read(snapshot: Snapshot, progress: readonly PartitionProgress[]): Promise<T>;
  deriveCertainty(value: T): Certainty;
  /** Progress of the stores just after the value's buckets were read. If absent, the progress after the whole read counts. */
  getRowsProgress?(value: T): readonly PartitionProgress[] | undefined;
  /** Whether any raw row in doubt affects the result. */
  areRelevant(doubts: readonly Doubt[], value: T): Promise<boolean>;
  /** Reads everything from raw rows: slower, and never in doubt. */
  readRaw(snapshot: Snapshot): Promise<T>;
};

type Consistent<T> = {
  readonly value: T;
  readonly snapshot: Snapshot;
  /** Progress of the value, if the offset of no partition changed during the read. */
  readonly unmoved_progress: readonly PartitionProgress[] | null;
  /** Progress at which the value is valid, if known, even if offsets changed during the read. */
  readonly valid_progress: readonly PartitionProgress[] | null;
};

const TRIES_MAX = 20;
const PAUSE_MS = 25;

/** Reads between two queries of the progress; null if the counter changed during the read. */
export async function readConsistently<T>(reading: SnapshotRead<T>): Promise<Consistent<T> | null> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    const before = await reading.progress();
    if (before === null) return null;
    if (isRebuilding(before)) continue;
    const snapshot = toSnapshot(before);
    const value = await reading.read(snapshot, before);
    const certainty = reading.deriveCertainty(value);
    if (certainty === 'certain') return { value, snapshot, unmoved_progress: null, valid_progress: before };
    const after = await reading.progress();
    if (after === null) return null;
    if (isRebuilding(after) || sumRebuilds(after) !== sumRebuilds(before)) continue;
    if (certainty === 'unless rebuilt') return { value, snapshot, unmoved_progress: null, valid_progress: before };
    const unmoved_progress = doubtsBetween(before, after).length === 0 ? before : null;
    // Only bucket rows can be in doubt, because raw rows before the snapshot's offsets do not change.
    const doubts = doubtsBetween(before, reading.getRowsProgress?.(value) ?? after);
    if (doubts.length === 0 || !(await reading.areRelevant(doubts, value)))
      return { value, snapshot, unmoved_progress, valid_progress: unmoved_progress };
  }
  const before = await reading.progress();
  if (before === null) return null;
  const snapshot = toSnapshot(before);
  const value = await reading.readRaw(snapshot);
  return (await reading.progress()) === null
    ? null
    : { value, snapshot, unmoved_progress: null, valid_progress: before };
}

/** Whether rows are being deleted and rewritten (storage/progress/bucket-lock.ts), so that they are unusable now. */
function isRebuilding(progress: readonly PartitionProgress[]): boolean {
  return progress.some((state) => state.gate?.startsWith('partition:'));
}

export function toSnapshot(progress: readonly PartitionProgress[]): Snapshot {
  return {
    before: nextOffsets(progress),
    days_before: readDaysBefore(progress),
  };
}

function doubtsBetween(before: readonly PartitionProgress[], after: readonly PartitionProgress[]): Doubt[] {
  const earlier = new Map(before.map((state) => [state.partition, state]));
  const doubts: Doubt[] = [];
  for (const state of after) {
    const then = earlier.get(state.partition);
    const from = then?.next_offset ?? 0n;
    const moved = state.next_offset !== from;
    if (!moved && then?.phase !== 'buckets' && state.phase !== 'buckets') continue;
    const to = [state.next_offset, state.slice_to ?? 0n, then?.slice_to ?? 0n].reduce((a, b) => (a > b ? a : b));
    const wide_before = then?.wide_slices ?? 0n;
    const isWriting = (at: PartitionProgress | undefined) => at?.phase === 'buckets' && at.is_wide;
    const is_wide = state.wide_slices !== wide_before || isWriting(then) || isWriting(state);
    if (to > from) doubts.push({ partition: state.partition, from, to, is_wide });
  }
  return doubts;
}
