/**
 * Waits until everything that was accepted in the environment before its clock was told to advance has its effect: what is in the log by
 * its places there, and what was to be corrected (docs/rules/clock.md, "Complete"). During the advance nothing is written there.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Scope } from '../../core/scope.ts';
import { hasOpenCorrections } from '../../storage/progress/corrections.ts';
import type { Stores } from '../../storage/stores.ts';

const LOOK_AGAIN_MS = 20;

export async function waitForLog(
  { log, postgres }: Stores,
  scope: Scope,
  { signal, isWanted }: { signal: AbortSignal; isWanted: () => Promise<boolean> },
): Promise<void> {
  while (await hasOpenCorrections(postgres, scope)) {
    if (!(await isWanted())) return;
    await wait(LOOK_AGAIN_MS, undefined, { signal });
  }
  const ends = new Map((await log.lag()).map(({ partition, end_offset }) => [partition, end_offset]));
  const isThere = async () =>
    (await log.lag()).every(({ partition, committed_offset }) => committed_offset >= (ends.get(partition) ?? 0n));
  while (!(await isThere())) {
    if (!(await isWanted())) return;
    await wait(LOOK_AGAIN_MS, undefined, { signal });
  }
}
