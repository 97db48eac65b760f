/** Forgets which records have changed, once whoever keeps answers made of them has seen it (docs/decisions/0007-cached-answers.md). */
import { purgeRecordChanges, readChanges } from '../../storage/cache/change-feed.ts';
import type { Stores } from '../../storage/stores.ts';
import type { ScheduledJob } from '../job.ts';

export function purgeRecordChangesJob({ postgres, usage_memory }: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'purge-record-changes',
    every_seconds,
    async run() {
      // Where nobody has asked for a while, this process would not know what came since.
      if (usage_memory !== undefined) await readChanges(postgres);
      return { done: { purged: await purgeRecordChanges(postgres) }, waiting: [], failed: [] };
    },
  };
}
