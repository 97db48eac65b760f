/**
 * Deletes record changes that existed at the previous run: by now every process with cached answers has read them
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
      // This process otherwise reads the changes only at a query. Without queries, it would miss those that are deleted
      // now.
      if (usage_cache !== undefined) await readChanges(postgres);
      return { done: { purged: await purgeRecordChanges(postgres) }, waiting: [], failed: [] };
    },
  };
}
