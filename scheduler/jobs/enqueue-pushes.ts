/**
 * Enqueues a job for each connection with records to push and no job that is due. A job may be due too late if the clock
 * of the database was moved back.
 */
import type { Stores } from '../../storage/foundation/stores.ts';
import { addPushJob, listConnectionsToPush } from '../../storage/queue/pending-pushes.ts';
import type { ScheduledJob } from '../job.ts';

export function enqueuePushesJob({ postgres }: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'enqueue-pushes',
    every_seconds,
    async run(now) {
      const connections = await listConnectionsToPush(postgres, now);
      for (const connection of connections)
        await postgres.transaction((transaction) => addPushJob(transaction, connection));
      return { done: { enqueued: connections.length }, waiting: [], failed: [] };
    },
  };
}
