/**
 * More partitions for a log that exists. Shards are fixed for life (core/event/identity.ts); which partition a shard belongs
 * to follows from the number of partitions, so all ranges change at once, and the hand-over is a drained one: producers and
 * workers are stopped, everything in the log is in the stores, and then the log gets its new partitions. An id that comes
 * again afterwards meets its owner in `event_identities`, which knows shards and no partitions.
 */
import { notAllowed } from '../../core/error.ts';
import type { Database, Stores } from '../stores.ts';

/** Makes the partitions themselves; the embedded log and Kafka differ only here. */
export type AddPartitions = (transaction: Database, to: number) => Promise<void>;

export async function growLog(stores: Pick<Stores, 'postgres' | 'log'>, to: number, add: AddPartitions): Promise<void> {
  const from = stores.log.partition_count;
  if (to <= from) throw notAllowed(`the log has ${from} partitions; partitions can only be added`);
  await stores.postgres.transaction(async (transaction) => {
    await checkDrained(stores, transaction);
    await add(transaction, to);
    // Everything that is counted is counted on the new partitions from their first record on.
    await transaction.raw(
      `insert into meter_barriers (meter_id, version, partition, from_offset)
       select v.meter_id, v.version, p, -1 from meter_versions v, generate_series(?::int, ?::int) p on conflict do nothing`,
      [from, to - 1],
    );
  });
}

export async function addEmbeddedPartitions(transaction: Database, to: number): Promise<void> {
  await transaction.raw(`lock table log_partitions in exclusive mode`);
  await transaction.raw(
    `insert into log_partitions (partition) select generate_series(0, ? - 1) on conflict do nothing`,
    [to],
  );
}

async function checkDrained({ log }: Pick<Stores, 'log'>, transaction: Database): Promise<void> {
  const waiting = (await log.lag()).filter((partition) => partition.unprocessed_records > 0);
  if (waiting.length > 0) {
    const list = waiting
      .map(({ partition, unprocessed_records }) => `${partition} (${unprocessed_records})`)
      .join(', ');
    throw notAllowed(`the log is not drained: records wait in partitions ${list}; let the pipeline finish first`);
  }
  const { rows } = await transaction.raw(
    `select (select count(*) from log_outbox)::int as messages,
            (select count(*) from slices where phase <> 'idle')::int as slices,
            (select count(*) from log_consumers where seen_until > now())::int as workers,
            (select count(*) from meter_versions v where v.state = 'announced')::int as announced`,
  );
  const [open] = rows as { messages: number; slices: number; workers: number; announced: number }[];
  if (open!.workers > 0) throw notAllowed('workers still run: stop every API and pipeline process first');
  if (open!.messages + open!.slices + open!.announced > 0) {
    throw notAllowed(
      'a slice or a change of a meter is on its way: start the pipeline, let it finish, and stop it again',
    );
  }
}
