/** How long a job has its place where others wait for it (docs/decisions/0021-fairness.md). */
import { isWaitedFor, type Line } from '../storage/job-turns.ts';
import type { Database } from '../storage/stores.ts';

const TURN_MS = 5_000;

type Turn = {
  readonly line: Line;
  /** The names of all that have its places. */
  readonly lane: readonly string[];
  readonly in_order?: boolean;
  readonly reads_anew?: boolean;
  readonly turn_ms?: number;
  /** In milliseconds. */
  readonly now?: () => number;
};

/**
 * Answers whether the job may go on. Its turn begins when it asks first: whatever it has waited for before is not its own work. When it is over and
 * nobody waits, another begins. Where what is done was read anew before, at most half of all work is that.
 */
export function turnOf(
  database: Database,
  { line, lane, in_order = false, reads_anew = false, turn_ms = TURN_MS, now = () => performance.now() }: Turn,
): () => Promise<boolean> {
  const began = now();
  let until: number | undefined;
  return async () => {
    until ??= now() + (reads_anew ? Math.max(turn_ms, now() - began) : turn_ms);
    if (now() < until) return true;
    if (await isWaitedFor(database, lane, line, { in_order })) return false;
    until = now() + turn_ms;
    return true;
  };
}
