/** Deletes system events with their deliveries, and inbound events of providers, after their retention period. */
import { DAY_MS } from '../../core/foundation/time/durations.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { purgeProviderEvents } from '../../storage/queue/provider-events.ts';
import { purgePublishedBefore } from '../../storage/queue/unstreamed-events.ts';
import type { ScheduledJob } from '../job.ts';

export function purgeSystemEventsJob(
  { postgres, log }: Stores,
  { every_seconds, retention_days }: { every_seconds: number; retention_days: number },
): ScheduledJob {
  return {
    name: 'purge-system-events',
    every_seconds,
    async run(now) {
      const before = new Date(now.getTime() - retention_days * DAY_MS);
      const is_streamed = log.publishSystemEvents !== undefined;
      const purged = await purgePublishedBefore(postgres, { before, is_streamed });
      const purged_inbound = await purgeProviderEvents(postgres, before);
      return { done: { purged, purged_inbound }, waiting: [], failed: [] };
    },
  };
}
