/**
 * Advances the clock of an environment after a request (docs/rules/clock.md). An attempt takes at most an hour. It resumes where the
 * previous one stopped or yielded its slot.
 */
import { z } from 'zod';
import type { DueWorkSettings } from '../../actions/schedule/due-work.ts';
import { tryAdvance } from '../../actions/schedule/test-clocks/advance-test-clock.ts';
import { ADVANCE_JOB } from '../../actions/schedule/test-clocks/move-test-clock.ts';
import { HOUR_MS } from '../../core/foundation/time/durations.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { QueuedWork } from '../job.ts';

const TIMEOUT_MS = HOUR_MS;

const Payload = z.object({ tenant_id: z.string(), environment_id: z.string(), workflow_id: z.string() });

/** `clock` reads the machine's clock, by which the progress of the workflow run is recorded. */
export function advanceTestClockWork(
  stores: Stores,
  { clock, settings }: { clock: () => Date; settings: DueWorkSettings },
): QueuedWork {
  return {
    name: ADVANCE_JOB.task,
    lane: 'long',
    run(payload, { attempt, is_last, signal: ending, mayGoOn }) {
      const signal = AbortSignal.any([ending, AbortSignal.timeout(TIMEOUT_MS)]);
      const how = { attempt, is_last, clock, signal, timeout_ms: TIMEOUT_MS, settings, mayGoOn };
      return tryAdvance(stores, Payload.parse(payload), how);
    },
  };
}
