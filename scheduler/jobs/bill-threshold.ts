/**
 * Bills one subscription before its period ends, if its usage has reached its billing threshold
 * (docs/rules/invoices.md, "Before the period is over").
 */
import { z } from 'zod';
import { billThreshold } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { THRESHOLD_TASK } from '../../storage/progress/threshold-arrivals.ts';
import type { QueuedWork } from '../job.ts';

const Payload = z.object({ tenant_id: z.string(), environment_id: z.string(), subscription_id: z.string() });

export function billThresholdWork(stores: Stores, { clock }: { clock: () => Date }): QueuedWork {
  return {
    name: THRESHOLD_TASK,
    async run(payload) {
      const { subscription_id, tenant_id, environment_id } = Payload.parse(payload);
      await billThreshold(stores, { tenant_id, environment_id }, { subscription_id, now: clock() });
      return 'completed';
    },
  };
}
