/**
 * Audit of a worker's files of known event ids: they are undamaged and contain the ids of the table. An id missing from the files
 * would be taken for a new one when it is sent again. Extra ids are harmless: ids of events that the stores rejected only cost one
 * more lookup.
 */
import type { OnFinding } from './findings.ts';

/** Comparison of a partition's files with the table, made by their owner. */
export type IdentityFiles = {
  readonly partition: number;
  /** The files contain the ids of records before this offset. */
  readonly until: bigint;
  /** Number of ids in the files (`count`), and of ids of the table that the files lack (`missing`). */
  readonly count: number;
  readonly missing: number;
  /** Reason why the files are unusable; the other numbers are then meaningless. */
  readonly fault: string | null;
};

export function auditIdentityFiles(
  files: readonly IdentityFiles[],
  found: OnFinding,
): { partitions: number; ids: number } {
  for (const { partition, until, count, missing, fault } of files) {
    const ends = { from_offset: '0', to_offset: String(until) };
    if (fault !== null) found({ kind: 'identity_file_damaged', count: 1, partition, what: fault });
    else if (missing > 0) {
      const what = `the files hold ${count} ids, and ${missing} of the table are not among them`;
      found({ kind: 'identity_file_differs', count: missing, partition, ...ends, what });
    }
  }
  return { partitions: files.length, ids: files.reduce((sum, { count }) => sum + count, 0) };
}
