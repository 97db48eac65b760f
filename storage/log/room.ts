/**
 * Delays deferrable work while the pipeline has a backlog, so that live events are processed first
 * (docs/rules/imports.md, "Events").
 */
import { setTimeout as pause } from 'node:timers/promises';
import { toMs } from '../../core/foundation/time/instant.ts';
import type { EventLog } from './log.ts';

/** Maximum age of the oldest unprocessed event at which deferrable work may continue. */
const WAITING_MAX_MS = 500;
const POLL_INTERVAL_MS = 50;
/** Longest wait of deferrable work; after that it continues despite the backlog. */
const PATIENCE_MS = 5_000;

/** Resolves when the pipeline has nearly caught up, or after `PATIENCE_MS`. */
export async function waitForPipeline(log: Pick<EventLog, 'lag'>, signal: AbortSignal): Promise<void> {
  for (let waited = 0; waited < PATIENCE_MS; waited += POLL_INTERVAL_MS) {
    const partitions = await log.lag();
    const oldest = Math.min(...partitions.map(({ oldest_unprocessed_at_us: at }) => at ?? Infinity));
    if (oldest === Infinity || Date.now() - toMs(oldest) < WAITING_MAX_MS) return;
    await pause(POLL_INTERVAL_MS, undefined, { signal });
  }
}
