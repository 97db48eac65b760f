/**
 * Applies the prices of a plan to its subscriptions after a request (docs/rules/subscriptions.md, "Prices that the plan gets later"),
 * within two hours per attempt. An attempt resumes where the previous one stopped or yielded its slot.
 */
import { z } from 'zod';
import { SYNC_JOB, trySync } from '../../actions/lifecycle/subscriptions/sync-plan.ts';
import { HOUR_MS } from '../../core/foundation/time/durations.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { loadNow } from '../../storage/models/schedule/environment-clock.ts';
import type { QueuedWork } from '../job.ts';

const TIMEOUT_MS = 2 * HOUR_MS;

const Payload = z.object({ tenant_id: z.string(), environment_id: z.string(), workflow_id: z.string() });

export function syncPlanPricesWork(stores: Stores, { clock }: { clock: () => Date }): QueuedWork {
  return {
    name: SYNC_JOB.task,
    lane: 'long',
    async run(payload, { attempt, is_last, signal: ending, mayGoOn }) {
      const place = Payload.parse(payload);
      const at = await loadNow(stores.postgres, place, clock);
      const signal = AbortSignal.any([ending, AbortSignal.timeout(TIMEOUT_MS)]);
      return trySync(stores, place, { attempt, is_last, clock: at, signal, timeout_ms: TIMEOUT_MS, mayGoOn });
    },
  };
}
