/**
 * Enqueues a job for each connection with inbound events or invoices that are due to be read, in case the job of the
 * webhook was lost.
 */
import type { Stores } from '../../storage/foundation/stores.ts';
import { addReadJob, listConnectionsToRead } from '../../storage/queue/provider-events.ts';
import type { ScheduledJob } from '../job.ts';

export function enqueueReadsJob({ postgres }: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'enqueue-provider-reads',
    every_seconds,
    async run(now) {
      const connections = await listConnectionsToRead(postgres, now);
      for (const connection of connections)
        await postgres.transaction((transaction) => addReadJob(transaction, connection));
      return { done: { enqueued: connections.length }, waiting: [], failed: [] };
    },
  };
}
