/**
 * Waits until everything accepted in an environment with a test clock has taken effect: the requested corrections, and the log up to its
 * current end (docs/rules/clock.md, "Complete"). An advance of the clock waits so, and blocks other writes meanwhile. A request that may
 * invoice a period waits so, too.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { hasOpenCorrections } from '../../../storage/progress/corrections.ts';

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

/** Longest acceptable wait of a client, in milliseconds. */
const REQUEST_WAITS_MS = 10_000;

/**
 * Waits until everything accepted before the request is counted, so that the request's invoice contains it; if that takes too long, the
 * request fails without effect.
 */
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
