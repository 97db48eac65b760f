/** Work that may wait lets whoever sends events now go first (docs/rules/imports.md, "Events"). */
import { setTimeout as pause } from 'node:timers/promises';
import { toMs } from '../../core/time/instant.ts';
import type { EventLog } from './log.ts';

/** Whoever sends events now waits for what was put before them: no longer than this. */
const WAITING_MAX_MS = 500;
const POLL_INTERVAL_MS = 50;
/** Where nothing is processed there is no turn to wait for. */
const PATIENCE_MS = 5_000;

/** Resolves when what was accepted is nearly processed, or is not processed at all. */
export async function waitForPipeline(log: Pick<EventLog, 'lag'>, signal: AbortSignal): Promise<void> {
  for (let waited = 0; waited < PATIENCE_MS; waited += POLL_INTERVAL_MS) {
    const partitions = await log.lag();
    const oldest = Math.min(...partitions.map(({ oldest_unprocessed_at_us: at }) => at ?? Infinity));
    if (oldest === Infinity || Date.now() - toMs(oldest) < WAITING_MAX_MS) return;
    await pause(POLL_INTERVAL_MS, undefined, { signal });
  }
}
