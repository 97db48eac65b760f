/**
 * Waits until everything that was accepted in an environment with a clock has its effect: what is in the log by its places there, and
 * what was to be corrected (docs/rules/clock.md, "Complete"). An advance does so, during which nothing is written there; and so does a
 * request that may invoice a period.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { FarthingError } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { hasOpenCorrections } from '../../storage/progress/corrections.ts';
import type { Stores } from '../../storage/stores.ts';

const RETRY_MS = 20;

export async function waitForLog(
  { log, postgres }: Stores,
  scope: Scope,
  { signal, isWanted }: { signal: AbortSignal; isWanted: () => Promise<boolean> },
): Promise<void> {
  while (await hasOpenCorrections(postgres, scope)) {
    if (!(await isWanted())) return;
    await wait(RETRY_MS, undefined, { signal });
  }
  const ends = new Map((await log.lag()).map(({ partition, end_offset }) => [partition, end_offset]));
  const isThere = async () =>
    (await log.lag()).every(({ partition, committed_offset }) => committed_offset >= (ends.get(partition) ?? 0n));
  while (!(await isThere())) {
    if (!(await isWanted())) return;
    await wait(RETRY_MS, undefined, { signal });
  }
}

/** As long as a client waits for an answer without wondering. */
const REQUEST_WAITS_MS = 10_000;

/** What was accepted before a request is on the invoice that it makes; where that takes too long nothing is done. */
export async function waitBeforeRequest(
  stores: Stores,
  scope: Scope,
  { timeout_ms = REQUEST_WAITS_MS }: { timeout_ms?: number } = {},
): Promise<void> {
  const signal = AbortSignal.timeout(timeout_ms);
  try {
    await waitForLog(stores, scope, { signal, isWanted: async () => true });
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new FarthingError('service_unavailable', 'usage that was accepted before is not counted yet: try again', {
      cause: error,
    });
  }
}
