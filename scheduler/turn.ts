/** How long a job has its place where others wait for it (docs/decisions/0057-turns-of-long-work.md). */
import { isWaitedFor, type Line } from '../storage/job-turns.ts';
import type { Database } from '../storage/stores.ts';

const TURN_MS = 5_000;

/**
 * Answers whether the job may go on. Its turn begins when it asks first: whatever it has waited for before is not its own work. When it is over and
 * nobody waits, another begins.
 */
export function turnOf(
  database: Database,
  { line, lane, turn_ms = TURN_MS }: { line: Line; lane: readonly string[]; turn_ms?: number },
): () => Promise<boolean> {
  let until: number | undefined;
  return async () => {
    until ??= performance.now() + turn_ms;
    if (performance.now() < until) return true;
    if (await isWaitedFor(database, lane, line)) return false;
    until = performance.now() + turn_ms;
    return true;
  };
}
