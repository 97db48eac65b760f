/** Publishes system events to their Kafka topic. */
import { streamEvents } from '../../actions/delivery/system-events/stream-events.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { ScheduledJob } from '../job.ts';

export function streamSystemEventsJob(stores: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'stream-system-events',
    every_seconds,
    run: async (now) => ({ done: { told: await streamEvents(stores, now) }, waiting: [], failed: [] }),
  };
}
