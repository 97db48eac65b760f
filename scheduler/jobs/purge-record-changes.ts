/**
 * Deletes record changes that existed at the previous run. Processes with cached answers have read them by then
 * (docs/decisions/0007-cached-answers.md).
 */
import { purgeRecordChanges, readChanges } from '../../storage/cache/change-feed.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { ScheduledJob } from '../job.ts';

export function purgeRecordChangesJob({ postgres, usage_cache }: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'purge-record-changes',
    every_seconds,
    async run() {
      // The changes are read first: without queries for a while, this process has not read the newest ones, and would miss them after the
      // deletion.
      if (usage_cache !== undefined) await readChanges(postgres);
      return { done: { purged: await purgeRecordChanges(postgres) }, waiting: [], failed: [] };
    },
  };
}
