/** Deletes expired OAuth sessions, whose flows nobody completed. They contain sealed credentials. */
import type { Stores } from '../../storage/foundation/stores.ts';
import { purgeOAuthSessions } from '../../storage/models/foundation/oauth-sessions.ts';
import type { ScheduledJob } from '../job.ts';

export function purgeOAuthSessionsJob({ postgres }: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'purge-oauth-sessions',
    every_seconds,
    run: async (now) => ({ done: { purged: await purgeOAuthSessions({ postgres }, now) }, waiting: [], failed: [] }),
  };
}
