/** Deletes jobs a week after their last attempt failed. Until then an operator can inspect them. */

import type { Stores } from '../../storage/foundation/stores.ts';
import { purgeGivenUpJobs } from '../../storage/queue/jobs.ts';
import type { ScheduledJob } from '../job.ts';

const RETENTION_DAYS = 7;

export function purgeJobsJob({ postgres }: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'purge-jobs',
    every_seconds,
    run: async () => ({ done: { purged: await purgeGivenUpJobs(postgres, RETENTION_DAYS) }, waiting: [], failed: [] }),
  };
}
