/**
 * Copies the catalogue of an environment into another after a request (docs/rules/records.md, "Copying an
 * environment"). An attempt takes at most an hour and resumes where the previous one stopped. A copy does not yield its
 * slot, so copies have slots of their own.
 */
import { z } from 'zod';
import { CLONE_JOB, tryClone } from '../../actions/operations/environments/clone-environment.ts';
import { HOUR_MS } from '../../core/foundation/time/durations.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { QueuedWork } from '../job.ts';

const TIMEOUT_MS = HOUR_MS;

const Payload = z.object({ tenant_id: z.string(), environment_id: z.string(), workflow_id: z.string() });

export function cloneEnvironmentWork(stores: Stores, { clock }: { clock: () => Date }): QueuedWork {
  return {
    name: CLONE_JOB.task,
    lane: 'copies',
    run(payload, { attempt, is_last, signal: ending }) {
      const signal = AbortSignal.any([ending, AbortSignal.timeout(TIMEOUT_MS)]);
      return tryClone(stores, Payload.parse(payload), { attempt, is_last, clock, signal, timeout_ms: TIMEOUT_MS });
    },
  };
}
