/**
 * A consumer of the embedded log: leases a fair share of the partitions (leases.ts), reads each in order, passes the records to its
 * handler, and commits the offsets that the stores have reached.
 */
import { BATCH_RECORDS_MAX } from '../batch-limits.ts';
import { PartitionStopped, pauseAfter } from '../continuity.ts';
import type { LogRecord, PartitionHandler } from '../log.ts';
import { RecentRecords } from '../recent-records.ts';
import { EmbeddedLeases } from './leases.ts';
import { checkPlace, type LogSource, readBatch } from './reader.ts';

type EmbeddedConsumerOptions = {
  id: string;
  lease_ms: number;
  alive_ms?: number;
  partition_count: number;
  batch_events_max: number;
  linger_ms: number;
};
type AssignedPartition = {
  readonly partition: number;
  read_from: bigint;
  committed: bigint;
  lost: boolean;
  readonly recent: RecentRecords;
  /** The previous batch was small. */
  trickles: boolean;
};

/** A batch with fewer events is small. */
const TRICKLE_EVENTS = 1_000;
const IDLE_WAIT_MS = 250;
/** Number of records before the committed offset that remain for inspection; the archive is the raw events in ClickHouse. */
const RETAINED_RECORDS = 1_000;

export class EmbeddedConsumer {
  readonly #source: LogSource;
  readonly #handler: PartitionHandler;
  readonly #options: EmbeddedConsumerOptions;
  readonly #leases: EmbeddedLeases;
  readonly #assigned = new Map<number, AssignedPartition>();
  /** The loop of each partition; a new loop begins after the old one has ended. */
  readonly #loops = new Map<number, Promise<void>>();
  /** Loops that wait for records, and loops that wait for time to pass; only the end of the consumer wakes the latter. */
  readonly #waiting = new Set<() => void>();
  readonly #pausing = new Set<() => void>();
  #stopping = false;
  #keeper: Promise<void> | null = null;

  constructor(source: LogSource, handler: PartitionHandler, options: EmbeddedConsumerOptions) {
    this.#source = source;
    this.#handler = handler;
    this.#options = options;
    this.#leases = new EmbeddedLeases(source.postgres, options);
  }

  async start(): Promise<void> {
    await this.#leases.start();
    await this.#shareOut();
    this.#keeper = this.#renewShare();
  }

  /** Records that this process has just made durable. Waiting loops are woken and need not read them from Postgres. */
  appended(records: readonly LogRecord[]): void {
    for (const record of records) this.#assigned.get(record.partition)?.recent.add(record);
    wake(this.#waiting);
  }

  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    wake(this.#waiting);
    wake(this.#pausing);
    await this.#keeper;
    await Promise.all(this.#loops.values());
    await this.#leases.stop();
  }

  async #renewShare(): Promise<void> {
    while (!this.#stopping) {
      await sleep(this.#options.lease_ms / 3, this.#pausing);
      if (this.#stopping) return;
      try {
        await this.#shareOut();
      } catch {
        // Postgres is unavailable: leases expire, and the next round tries again.
      }
    }
  }

  /** One round: drops expired partitions, releases those above the fair share, and leases free ones below it. */
  async #shareOut(): Promise<void> {
    for (const held of [...this.#assigned.values()]) if (!this.#leases.holds(held.partition)) this.#lose(held);
    await this.#leases.tend();
    const share = await this.#leases.fairShare();
    for (const held of [...this.#assigned.values()].slice(share)) {
      this.#lose(held);
      await this.#loops.get(held.partition);
      await this.#leases.giveBack(held.partition);
    }
    for (const partition of await this.#leases.takeFree(share - this.#assigned.size, [...this.#loops.keys()]))
      this.#begin(partition);
  }

  #begin(partition: number): void {
    const held = { partition, read_from: 0n, committed: 0n, lost: false, recent: new RecentRecords(), trickles: false };
    this.#assigned.set(partition, held);
    this.#loops.set(
      partition,
      this.#run(held).finally(() => this.#loops.delete(partition)),
    );
  }

  #lose(held: AssignedPartition): void {
    held.lost = true;
    this.#assigned.delete(held.partition);
    wake(this.#waiting);
    wake(this.#pausing);
  }

  #owns(held: AssignedPartition): boolean {
    return !held.lost && this.#leases.holds(held.partition);
  }

  /** Runs one partition while it is leased: assigned, batches, revoked. After a failure it restarts at the offset of the stores. */
  async #run(held: AssignedPartition): Promise<void> {
    let assigned = false;
    let failures = 0;
    while (!this.#stopping && !held.lost) {
      if (!this.#owns(held)) {
        await sleep(IDLE_WAIT_MS, this.#pausing); // Its lease has expired: continuing could fence off a new owner.
        continue;
      }
      try {
        if (!assigned) await this.#startWhereTheStoresAre(held);
        assigned = true;
        await this.#takeBatch(held);
        failures = 0;
      } catch (error) {
        assigned = false;
        // A new owner deletes records that this process has not read. Only the owner can report a missing record.
        if (error instanceof PartitionStopped && !this.#owns(held)) continue;
        this.#handler.failed?.(held.partition, error);
        await sleep(pauseAfter(error, ++failures), this.#pausing);
      }
    }
    await this.#handler.revoked(held.partition);
  }

  async #startWhereTheStoresAre(held: AssignedPartition): Promise<void> {
    const place = await this.#handler.assigned(held.partition);
    await checkPlace(this.#source, held.partition, place);
    held.read_from = place.next_offset;
    // A previous owner may have stopped between its last slice and its commit. If no further records come, only this commit reports that
    // slice.
    if (place.next_offset > held.committed) await this.#commit(held, place.next_offset);
  }

  async #takeBatch(held: AssignedPartition): Promise<void> {
    const began = performance.now();
    const records = await this.#read(held);
    if (records.length > 0) {
      await this.#deliver(held, records);
      await this.#linger(held, records, began);
    } else {
      held.trickles = false;
      this.#handler.caughtUp?.(held.partition);
      await sleep(IDLE_WAIT_MS, this.#waiting);
    }
  }

  async #read({ partition, read_from, recent }: AssignedPartition): Promise<LogRecord[]> {
    const { batch_events_max } = this.#options;
    const known = recent.take(read_from, batch_events_max);
    return known.length > 0
      ? known
      : readBatch(this.#source, { partition, from: read_from, events_max: batch_events_max });
  }

  /**
   * A small batch costs as much as a large one. After a small batch, the next one is gathered for the linger time; after two small batches,
   * for twice as long. After a large batch, the next one is read at once.
   */
  async #linger(held: AssignedPartition, records: readonly LogRecord[], began: number): Promise<void> {
    const events = records.reduce((total, record) => total + record.event_count, 0);
    const isLarge = events >= this.#options.batch_events_max / 2 || records.length >= BATCH_RECORDS_MAX / 2;
    const linger_ms = this.#options.linger_ms * (held.trickles ? 2 : 1);
    held.trickles = events < TRICKLE_EVENTS;
    const rest = linger_ms - (performance.now() - began);
    if (!isLarge && rest > 0 && !this.#stopping) await sleep(rest, this.#pausing);
  }

  async #deliver(held: AssignedPartition, records: LogRecord[]): Promise<void> {
    const { stored_until, read_from } = await this.#handler.process({
      partition: held.partition,
      records,
      isOwner: () => this.#owns(held),
      heartbeat: async () => {},
    });
    held.read_from = read_from;
    if (stored_until > held.committed) await this.#commit(held, stored_until);
  }

  /** Records that were read but not stored remain in the log: after a crash they are nowhere else. */
  async #commit(held: AssignedPartition, stored_until: bigint): Promise<void> {
    const { postgres, segments } = this.#source;
    await postgres.raw(`update log_partitions set committed_offset = ? where partition = ? and committed_offset < ?`, [
      String(stored_until),
      held.partition,
      String(stored_until),
    ]);
    await postgres.raw(`delete from log_records where partition = ? and "offset" < ?`, [
      held.partition,
      String(stored_until - BigInt(RETAINED_RECORDS)),
    ]);
    held.committed = stored_until;
    await segments?.removeSometimes().catch((error) => this.#handler.noticed?.(held.partition, error));
  }
}

function wake(sleepers: ReadonlySet<() => void>): void {
  for (const done of [...sleepers]) done();
}

/** Resolves when the time is over or the sleeper is woken. */
function sleep(ms: number, sleepers: Set<() => void>): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      sleepers.delete(done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    sleepers.add(done);
  });
}
