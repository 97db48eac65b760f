/** Deletes the stored answers of requests with an idempotency key after 48 hours. */

import type { Stores } from '../../storage/foundation/stores.ts';
import { purgeAnswers } from '../../storage/models/foundation/idempotency-key.ts';
import type { ScheduledJob } from '../job.ts';

export function purgeAnswersJob({ postgres }: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'purge-answers',
    every_seconds,
    run: async (now) => ({ done: { purged: await purgeAnswers(postgres, now) }, waiting: [], failed: [] }),
  };
}
