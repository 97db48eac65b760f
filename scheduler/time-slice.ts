/** How long a job holds its slot while others wait for it (docs/decisions/0021-fairness.md). */

import type { Database } from '../storage/foundation/stores.ts';
import { hasWaiters, type JobLane } from '../storage/queue/fair-jobs.ts';

const SLICE_MS = 5_000;

type TimeSliceInput = {
  readonly line: JobLane;
  /** Task names of all work that shares the slots with this job. */
  readonly lane: readonly string[];
  readonly in_order?: boolean;
  readonly rereads_input?: boolean;
  readonly slice_ms?: number;
  /** Reads a clock, in milliseconds. */
  readonly now?: () => number;
};

/**
 * Returns a function that answers whether the job may continue. The slice begins at the first call, because earlier waiting is not the
 * job's own work. If it is over and no job waits, another slice begins. For work that rereads its input, the slice is at least as long as
 * the rereading, so that at most half of the time is spent on that.
 */
export function createTimeSlice(
  database: Database,
  {
    line,
    lane,
    in_order = false,
    rereads_input = false,
    slice_ms = SLICE_MS,
    now = () => performance.now(),
  }: TimeSliceInput,
): () => Promise<boolean> {
  const began = now();
  let until: number | undefined;
  return async () => {
    until ??= now() + (rereads_input ? Math.max(slice_ms, now() - began) : slice_ms);
    if (now() < until) return true;
    if (await hasWaiters(database, lane, line, { in_order })) return false;
    until = now() + slice_ms;
    return true;
  };
}
