/** Deletes stored log offsets of reservation events after their retention period. */

import { DAY_MS } from '../../core/foundation/time/durations.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { purgeReservationEvents } from '../../storage/models/reservations/reservation.ts';
import type { ScheduledJob } from '../job.ts';

export function purgeReservationEventsJob(
  { postgres }: Stores,
  { every_seconds, retention_days }: { every_seconds: number; retention_days: number },
): ScheduledJob {
  return {
    name: 'purge-reservation-events',
    every_seconds,
    async run(now) {
      const purged = await purgeReservationEvents(postgres, new Date(now.getTime() - retention_days * DAY_MS));
      return { done: { purged }, waiting: [], failed: [] };
    },
  };
}
