/**
 * A read that is exact while data arrive. The rows of a slice reach `usage_buckets` in one part for each month, so any moment
 * shows each month of a slice there whole or not at all. Raw rows are read up to the offset that the stores had finished; only
 * for a partition that was between the two during the read it is not known on which side its slice fell. Then it is asked
 * whether that slice has an event in the ragged ends at all, which it mostly has not; and if it has, the read is made again.
 * While rows are rebuilt after a correction they say nothing: the read waits, and in the end the raw rows answer. Whose meter
 * was changed meanwhile asks anew: half of the rows may be of one version, and half of the next.
 */
import { nextOffsets, readDaysBefore, type SliceState, sumRebuilds } from '../progress/slice-state.ts';

export type Snapshot = {
  readonly before: ReadonlyMap<number, bigint>;
  /** The UTC days before it have daily rollups; that they become more during the read takes nothing from the base rows. */
  readonly days_before: number;
};

/** Offsets of a partition that the read may have seen in one place and not in the other. */
export type Doubt = {
  readonly partition: number;
  readonly from: bigint;
  readonly to: bigint;
  /** Usage rows of several months are among it, which do not arrive in one moment. */
  readonly is_wide: boolean;
};

/**
 * "certain": what was read is of the moment of the progress that it was given, whatever came since. "unless rebuilt": likewise,
 * provided that no rows were rebuilt since, because raw events count otherwise then. "open": it is to be found out.
 */
export type Certainty = 'certain' | 'unless rebuilt' | 'open';

export type SnapshotRead<T> = {
  /** How far the stores are; null once what is counted by is no longer the same. */
  progress(): Promise<readonly SliceState[] | null>;
  /** Reads buckets, and raw rows before the snapshot's offsets. */
  read(snapshot: Snapshot, progress: readonly SliceState[]): Promise<T>;
  deriveCertainty(value: T): Certainty;
  /** How far the stores were just after the buckets were read; when absent, they may have been read until the end. */
  rowsReadAt?(value: T): readonly SliceState[] | undefined;
  /** Whether any raw row in doubt would matter to what was read. */
  matters(doubts: readonly Doubt[], value: T): Promise<boolean>;
  /** Reads everything from raw rows: slower, and never in doubt. */
  readRaw(snapshot: Snapshot): Promise<T>;
};

export type Consistent<T> = {
  readonly value: T;
  readonly snapshot: Snapshot;
  /** The progress at which the value stands, where nothing moved while it was read. */
  readonly stood_still: readonly SliceState[] | null;
  /** The progress at which it stands, where that is known, whatever moved. */
  readonly stands_at: readonly SliceState[] | null;
};

const TRIES_MAX = 20;
const PAUSE_MS = 25;

/** Null when what is counted by has changed during the read. */
export async function readConsistently<T>(reading: SnapshotRead<T>): Promise<Consistent<T> | null> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    const before = await reading.progress();
    if (before === null) return null;
    if (isRebuilding(before)) continue;
    const snapshot = toSnapshot(before);
    const value = await reading.read(snapshot, before);
    const certainty = reading.deriveCertainty(value);
    if (certainty === 'certain') return { value, snapshot, stood_still: null, stands_at: before };
    const after = await reading.progress();
    if (after === null) return null;
    if (isRebuilding(after) || sumRebuilds(after) !== sumRebuilds(before)) continue;
    if (certainty === 'unless rebuilt') return { value, snapshot, stood_still: null, stands_at: before };
    const stood_still = doubtsBetween(before, after).length === 0 ? before : null;
    // Raw rows before the snapshot's offsets are the same whenever they are read.
    const doubts = doubtsBetween(before, reading.rowsReadAt?.(value) ?? after);
    if (doubts.length === 0 || !(await reading.matters(doubts, value)))
      return { value, snapshot, stood_still, stands_at: stood_still };
  }
  const before = await reading.progress();
  if (before === null) return null;
  const snapshot = toSnapshot(before);
  const value = await reading.readRaw(snapshot);
  return (await reading.progress()) === null ? null : { value, snapshot, stood_still: null, stands_at: before };
}

/** Rows are being taken away and written anew (storage/progress/bucket-lock.ts): they say nothing now. */
function isRebuilding(progress: readonly SliceState[]): boolean {
  return progress.some((state) => state.gate?.startsWith('partition:'));
}

export function toSnapshot(progress: readonly SliceState[]): Snapshot {
  return {
    before: nextOffsets(progress),
    days_before: readDaysBefore(progress),
  };
}

function doubtsBetween(before: readonly SliceState[], after: readonly SliceState[]): Doubt[] {
  const earlier = new Map(before.map((state) => [state.partition, state]));
  const doubts: Doubt[] = [];
  for (const state of after) {
    const then = earlier.get(state.partition);
    const from = then?.next_offset ?? 0n;
    const moved = state.next_offset !== from;
    if (!moved && then?.phase !== 'buckets' && state.phase !== 'buckets') continue;
    const to = [state.next_offset, state.slice_to ?? 0n, then?.slice_to ?? 0n].reduce((a, b) => (a > b ? a : b));
    const wide_before = then?.wide_slices ?? 0n;
    const isWriting = (at: SliceState | undefined) => at?.phase === 'buckets' && at.is_wide;
    const is_wide = state.wide_slices !== wide_before || isWriting(then) || isWriting(state);
    if (to > from) doubts.push({ partition: state.partition, from, to, is_wide });
  }
  return doubts;
}
