/**
 * Adds partitions to an existing log. Shards are permanent (core/metering/event/identity.ts); the partition of a shard follows from the
 * number of partitions. All shards move at once, so the log must be drained: producers and workers are stopped, the stores contain
 * everything in the log, and then the log gets its new partitions. A repeated id is still recognized, because `event_identities` is
 * organized by shard, not by partition.
 *
 * The number in use changes last, in one Postgres transaction. A failure before that leaves the old number in use. A Kafka topic then
 * accepts no events until the command runs again.
 */
import { notAllowed } from '../../core/foundation/error.ts';
import type { Database, Stores } from '../foundation/stores.ts';
import { KafkaLog } from './kafka/kafka.ts';
import { updateLayout } from './kafka/layout.ts';
import type { EventLog } from './log.ts';

/** Operations that differ between the logs. */
type GrowthStrategy = {
  /** Creates partitions outside Postgres; resolves when no producer appends with the old number any more. */
  make(to: number): Promise<void>;
  /** Locks out producers that append through Postgres, until the commit. */
  lock(transaction: Database): Promise<void>;
  checkNobodyReads(database: Database): Promise<void>;
  /** Puts the new number of partitions into use, from the commit on. */
  use(transaction: Database, to: number): Promise<void>;
};

export async function growLog(stores: Pick<Stores, 'postgres' | 'log'>, to: number): Promise<void> {
  const { postgres, log } = stores;
  const from = log.partition_count;
  if (to <= from) throw notAllowed(`the log has ${from} partitions; partitions can only be added`);
  const strategy = chooseGrowthStrategy(log);
  const check = async (database: Database) => {
    await strategy.checkNobodyReads(database);
    await checkDrained(log, database);
  };
  await check(postgres);
  await strategy.make(to);
  await postgres.transaction(async (transaction) => {
    // No partition can be taken before the commit, so a worker that the check misses uses the new number.
    await transaction.raw(`lock table slices in exclusive mode`);
    await strategy.lock(transaction);
    await check(transaction);
    await strategy.use(transaction, to);
    // Every meter version counts the new partitions from their first record on.
    await transaction.raw(
      `insert into meter_barriers (meter_id, version, partition, from_offset)
       select v.meter_id, v.version, p, -1 from meter_versions v, generate_series(?::int, ?::int) p on conflict do nothing`,
      [from, to - 1],
    );
  });
}

function chooseGrowthStrategy(log: EventLog): GrowthStrategy {
  if (!(log instanceof KafkaLog)) return embeddedGrowth;
  return {
    make: (to) => log.addPartitions(to),
    lock: async () => {},
    checkNobodyReads: () => log.checkNobodyReads(),
    use: updateLayout,
  };
}

const embeddedGrowth: GrowthStrategy = {
  make: async () => {},
  lock: async (transaction) => void (await transaction.raw(`lock table log_partitions in exclusive mode`)),
  async checkNobodyReads(database) {
    const { rows } = await database.raw(
      `select count(*)::int as workers from log_consumers where seen_until > clock_timestamp()`,
    );
    if (rows[0].workers > 0)
      throw notAllowed(`${rows[0].workers} workers still run: stop every API and pipeline process first`);
  },
  async use(transaction, to) {
    await transaction.raw(
      `insert into log_partitions (partition) select generate_series(0, ? - 1) on conflict do nothing`,
      [to],
    );
  },
};

/** Throws unless the log is drained. The offsets of the stores decide, because the offsets committed to the log may be lost or expire. */
async function checkDrained(log: EventLog, database: Database): Promise<void> {
  const { rows: slices } = await database.raw(`select partition, next_offset, phase from slices`);
  const stored = new Map(
    (slices as { partition: number; next_offset: string }[]).map((slice) => [
      slice.partition,
      BigInt(slice.next_offset),
    ]),
  );
  const waiting = (await log.lag()).filter(({ partition, end_offset }) => (stored.get(partition) ?? 0n) < end_offset);
  if (waiting.length > 0) {
    const list = waiting.map(({ partition }) => partition).join(', ');
    throw notAllowed(
      `the log is not drained: records wait in partitions ${list}; stop the APIs and let the pipeline finish first`,
    );
  }
  if (slices.some(({ phase }: { phase: string }) => phase !== 'idle'))
    throw notAllowed('a slice is on its way: start the pipeline, let it finish, and stop it again');
}
