/** Emits `event.rejected` a minute after the first of some events that were not counted (storage/progress/rejection-arrivals.ts). */
import { z } from 'zod';
import { notifyRejections } from '../../actions/metering/events/notify-rejections.ts';
import { UNCOUNTED_REASONS } from '../../core/metering/event/uncounted.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { REJECTION_TASK } from '../../storage/progress/rejection-arrivals.ts';
import type { QueuedWork } from '../job.ts';

const Payload = z.object({
  tenant_id: z.string(),
  environment_id: z.string(),
  reason: z.enum(UNCOUNTED_REASONS),
  since_us: z.number(),
});

export function notifyRejectionsWork(stores: Stores, { clock }: { clock: () => Date }): QueuedWork {
  return {
    name: REJECTION_TASK,
    async run(payload) {
      const { reason, since_us, ...scope } = Payload.parse(payload);
      await notifyRejections(stores, scope, { reason, since_us, now: clock() });
      return 'completed';
    },
  };
}
