/**
 * Requests daily rollups of past days from the pipeline, and repeats the request until they exist
 * (docs/decisions/0001-one-aggregate.md).
 */

import { DAY_MS } from '../../core/foundation/time/durations.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { requestDailyRollups } from '../../storage/progress/daily-rollups-message.ts';
import type { ScheduledJob } from '../job.ts';

/**
 * Makes the daily rollups of days that are `after_days` old. Usage that arrives later updates the rollups when it is
 * written.
 */
export function makeDailyRollupsJob(
  { postgres }: Pick<Stores, 'postgres'>,
  { every_seconds, after_days }: { every_seconds: number; after_days: number },
): ScheduledJob {
  return {
    // Older name of the job, because queued jobs and metrics use it.
    name: 'make-day-rows',
    every_seconds,
    async run(now) {
      const today = Math.floor(now.getTime() / DAY_MS);
      const isRequested = await requestDailyRollups(postgres, today - after_days);
      return { done: { asked: isRequested ? 1 : 0 }, waiting: [], failed: [] };
    },
  };
}
