/** Deletes the browser sessions that have ended. */
import type { Stores } from '../../storage/foundation/stores.ts';
import { purgeSessions } from '../../storage/models/operations/session.ts';
import type { ScheduledJob } from '../job.ts';

export function purgeSessionsJob({ postgres }: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'purge-sessions',
    every_seconds,
    run: async (now) => ({ done: { purged: await purgeSessions(postgres, now) }, waiting: [], failed: [] }),
  };
}
