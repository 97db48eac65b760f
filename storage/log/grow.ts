/**
 * More partitions for a log that exists. Shards are fixed for life (core/event/identity.ts); which partition a shard belongs
 * to follows from the number of partitions, so all ranges change at once, and the hand-over is a drained one: producers and
 * workers are stopped, everything in the log is in the stores, and then the log gets its new partitions. An id that comes
 * again afterwards meets its owner in `event_identities`, which knows shards and no partitions.
 *
 * The number in use changes in one transaction of Postgres, and last. Whatever ends us before that leaves the old number in
 * use, and a topic of Kafka that takes no events until we are run again.
 */
import { notAllowed } from '../../core/error.ts';
import type { Database, Stores } from '../stores.ts';
import { KafkaLog } from './kafka/kafka.ts';
import { updateLayout } from './kafka/layout.ts';
import type { EventLog } from './log.ts';

/** What differs between the logs. */
type GrowthStrategy = {
  /** Makes the partitions where Postgres does not hold them; resolves when nobody appends by the old number any more. */
  make(to: number): Promise<void>;
  /** Keeps those out, until the commit, who append through Postgres. */
  lock(transaction: Database): Promise<void>;
  checkNobodyReads(database: Database): Promise<void>;
  /** From the commit on the new number is in use. */
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
    // Nobody takes a partition from here to the commit, so whom the check does not see takes it by the new number.
    await transaction.raw(`lock table slices in exclusive mode`);
    await strategy.lock(transaction);
    await check(transaction);
    await strategy.use(transaction, to);
    // Everything that is counted is counted on the new partitions from their first record on.
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

/** The stores decide, not what was committed to the log: a commit may be lost, or be forgotten while nobody reads. */
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
