/** Enqueues the jobs of connections whose own job was lost, or is due too late because the clock of the database was moved back. */
import type { Stores, Transaction } from '../../storage/foundation/stores.ts';
import { addPushJob, listConnectionsToPush } from '../../storage/queue/pending-pushes.ts';
import { addReadJob, listConnectionsToRead } from '../../storage/queue/provider-events.ts';
import type { ScheduledJob } from '../job.ts';

/** Enqueues a job for each connection with records to push and no job that is due. */
export function enqueuePushesJob(stores: Stores, every_seconds: number): ScheduledJob {
  return enqueueJob(stores, { name: 'enqueue-pushes', every_seconds, list: listConnectionsToPush, add: addPushJob });
}

/** Enqueues a job for each connection with inbound events or invoices that are due to be read. */
export function enqueueReadsJob(stores: Stores, every_seconds: number): ScheduledJob {
  const reads = { list: listConnectionsToRead, add: addReadJob };
  return enqueueJob(stores, { name: 'enqueue-provider-reads', every_seconds, ...reads });
}

type EnqueuedConnections<Connection> = Pick<ScheduledJob, 'name' | 'every_seconds'> & {
  list(database: Stores['postgres'], now: Date): Promise<readonly Connection[]>;
  add(transaction: Transaction, connection: Connection): Promise<void>;
};

function enqueueJob<Connection>(
  { postgres }: Stores,
  { name, every_seconds, list, add }: EnqueuedConnections<Connection>,
): ScheduledJob {
  return {
    name,
    every_seconds,
    async run(now) {
      const connections = await list(postgres, now);
      for (const connection of connections) await postgres.transaction((transaction) => add(transaction, connection));
      return { done: { enqueued: connections.length }, waiting: [], failed: [] };
    },
  };
}
