/**
 * Audit of what a worker keeps on its disk of the ids that it has seen: files that are not damaged, and that hold the ids of
 * the table. An id that they do not know would be taken for a new one when it comes again. They may know more: ids of events
 * that the stores refused are looked up once more than they need be, and nothing else.
 */
import type { OnFinding } from './findings.ts';

/** The files of one partition against the table, as whoever reads them says. */
export type IdentityFiles = {
  readonly partition: number;
  /** They hold the ids of what stands before it in the log. */
  readonly until: bigint;
  /** How many ids they hold, and how many of the table they do not. */
  readonly count: number;
  readonly missing: number;
  /** Why they cannot be used; the rest says nothing then. */
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
