/** How long a job has its place where others wait for it (docs/decisions/0021-fairness.md). */
import { hasWaiters, type JobLane } from '../storage/fair-jobs.ts';
import type { Database } from '../storage/stores.ts';

const SLICE_MS = 5_000;

type TimeSliceInput = {
  readonly line: JobLane;
  /** The names of all that have its places. */
  readonly lane: readonly string[];
  readonly in_order?: boolean;
  readonly rereads_input?: boolean;
  readonly slice_ms?: number;
  /** In milliseconds. */
  readonly now?: () => number;
};

/**
 * Answers whether the job may go on. Its turn begins when it asks first: whatever it has waited for before is not its own work. When it is over and
 * nobody waits, another begins. Where what is done was read anew before, at most half of all work is that.
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
