/** Forgets the answers that were kept for repeated requests (48 hours). */
import { purgeAnswers } from '../../storage/models/idempotency-key.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Job } from '../job.ts';

export function purgeAnswersJob({ postgres }: Stores, every_seconds: number): Job {
  return {
    name: 'purge-answers',
    every_seconds,
    run: async (now) => ({ done: { purged: await purgeAnswers(postgres, now) }, waiting: [], failed: [] }),
  };
}
