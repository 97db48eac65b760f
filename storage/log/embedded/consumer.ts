/**
 * A consumer of the embedded log: leases a fair share of the partitions (leases.ts), reads each in order, passes the records to its
 * handler, and commits the offsets that the stores have reached.
 */

import { IN_NO_ANSWER } from '../../postgres/interceptors/own-writes.ts';
import { BATCH_RECORDS_MAX } from '../batch-limits.ts';
import { PartitionStopped, pauseAfter } from '../continuity.ts';
import type { LogRecord, PartitionHandler } from '../log.ts';
import { RecentRecords } from '../recent-records.ts';
import { EmbeddedLeases } from './leases.ts';
import { checkStoredPosition, type LogSource, readBatch } from './reader.ts';

type EmbeddedConsumerOptions = {
  id: string;
  lease_ms: number;
  alive_ms?: number;
  partition_count: number;
  batch_events_max: number;
  linger_ms: number;
  /** Pause after a read without records. An append by this process ends it. */
  idle_ms?: number;
};
type AssignedPartition = {
  readonly partition: number;
  read_from: bigint;
  committed: bigint;
  lost: boolean;
  readonly recent: RecentRecords;
  /** Whether the previous batch was small. */
  trickles: boolean;
};

/** Number of events below which a batch counts as small. */
const TRICKLE_EVENTS = 1_000;
const IDLE_WAIT_MS = 250;
/** Number of records before the committed offset that are not deleted, for inspection. The archive is the raw events in ClickHouse. */
const RETAINED_RECORDS = 1_000;

export class EmbeddedConsumer {
  readonly #source: LogSource;
  readonly #handler: PartitionHandler;
  readonly #options: EmbeddedConsumerOptions;
  readonly #leases: EmbeddedLeases;
  readonly #assigned = new Map<number, AssignedPartition>();
  /** The loop of each partition; a new loop begins after the old one has ended. */
  readonly #loops = new Map<number, Promise<void>>();
  /**
   * Loops that wait for records, and loops that wait for a timeout. Only the end of the consumer wakes loops of the
   * second type.
   */
  readonly #waiting = new Set<() => void>();
  readonly #pausing = new Set<() => void>();
  #appends = 0;
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

  /**
   * Takes the records that this process has just made durable, and wakes waiting loops, which then need not read the records from
   * Postgres.
   */
  appended(records: readonly LogRecord[]): void {
    for (const record of records) this.#assigned.get(record.partition)?.recent.add(record);
    this.#appends++;
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

  /** Runs one round: drops expired partitions, releases those above the fair share, and leases free ones below it. */
  async #shareOut(): Promise<void> {
    for (const assigned of [...this.#assigned.values()])
      if (!this.#leases.holds(assigned.partition)) this.#lose(assigned);
    await this.#leases.tend();
    const share = await this.#leases.fairShare();
    for (const assigned of [...this.#assigned.values()].slice(share)) {
      this.#lose(assigned);
      await this.#loops.get(assigned.partition);
      await this.#leases.giveBack(assigned.partition);
    }
    for (const partition of await this.#leases.takeFree(share - this.#assigned.size, [...this.#loops.keys()]))
      this.#begin(partition);
  }

  #begin(partition: number): void {
    const assigned = {
      partition,
      read_from: 0n,
      committed: 0n,
      lost: false,
      recent: new RecentRecords(),
      trickles: false,
    };
    this.#assigned.set(partition, assigned);
    this.#loops.set(
      partition,
      this.#run(assigned).finally(() => this.#loops.delete(partition)),
    );
  }

  #lose(assigned: AssignedPartition): void {
    assigned.lost = true;
    this.#assigned.delete(assigned.partition);
    wake(this.#waiting);
    wake(this.#pausing);
  }

  #owns(assigned: AssignedPartition): boolean {
    return !assigned.lost && this.#leases.holds(assigned.partition);
  }

  /** Runs one partition while it is leased: assigned, batches, revoked. After a failure it restarts at the offset of the stores. */
  async #run(assigned: AssignedPartition): Promise<void> {
    let isReady = false;
    let failures = 0;
    while (!this.#stopping && !assigned.lost) {
      if (!this.#owns(assigned)) {
        // The lease has expired, and another worker may own the partition, which this one must not fence off.
        await sleep(IDLE_WAIT_MS, this.#pausing);
        continue;
      }
      try {
        if (!isReady) await this.#startWhereTheStoresAre(assigned);
        isReady = true;
        await this.#takeBatch(assigned);
        failures = 0;
      } catch (error) {
        isReady = false;
        // A new owner deletes records that this process has not read. Only the owner can report a missing record.
        if (error instanceof PartitionStopped && !this.#owns(assigned)) continue;
        this.#handler.failed?.(assigned.partition, error);
        await sleep(pauseAfter(error, ++failures), this.#pausing);
      }
    }
    await this.#handler.revoked(assigned.partition);
  }

  async #startWhereTheStoresAre(assigned: AssignedPartition): Promise<void> {
    const position = await this.#handler.assigned(assigned.partition);
    await checkStoredPosition(this.#source, assigned.partition, position);
    assigned.read_from = position.next_offset;
    // A previous owner may have stopped between its last slice and its commit. If no further records come, only this commit reports that
    // slice.
    if (position.next_offset > assigned.committed) await this.#commit(assigned, position.next_offset);
  }

  async #takeBatch(assigned: AssignedPartition): Promise<void> {
    const began = performance.now();
    const appends = this.#appends;
    const records = await this.#read(assigned);
    if (records.length > 0) {
      await this.#deliver(assigned, records);
      await this.#linger(assigned, records, began);
    } else {
      assigned.trickles = false;
      this.#handler.caughtUp?.(assigned.partition);
      // A signal that arrived during the read found no waiting loop.
      const isSignalled = this.#appends !== appends || this.#stopping || assigned.lost;
      if (!isSignalled) await sleep(this.#options.idle_ms ?? IDLE_WAIT_MS, this.#waiting);
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
   * Waits before the next read, because a small batch costs as much as a large one. After a small batch, the next one is gathered for the
   * linger time; after two small batches, for twice as long. After a large batch, the next one is read at once.
   */
  async #linger(assigned: AssignedPartition, records: readonly LogRecord[], began: number): Promise<void> {
    const events = records.reduce((total, record) => total + record.event_count, 0);
    const isLarge = events >= this.#options.batch_events_max / 2 || records.length >= BATCH_RECORDS_MAX / 2;
    const linger_ms = this.#options.linger_ms * (assigned.trickles ? 2 : 1);
    assigned.trickles = events < TRICKLE_EVENTS;
    const rest = linger_ms - (performance.now() - began);
    if (!isLarge && rest > 0 && !this.#stopping) await sleep(rest, this.#pausing);
  }

  async #deliver(assigned: AssignedPartition, records: LogRecord[]): Promise<void> {
    const { stored_until, read_from } = await this.#handler.process({
      partition: assigned.partition,
      records,
      isOwner: () => this.#owns(assigned),
      heartbeat: async () => {},
    });
    assigned.read_from = read_from;
    if (stored_until > assigned.committed) await this.#commit(assigned, stored_until);
  }

  /**
   * Commits the stored offset. Records that were read but not stored are excluded, because after a crash only the log
   * has them.
   */
  async #commit(assigned: AssignedPartition, stored_until: bigint): Promise<void> {
    const { postgres, segments } = this.#source;
    const commit = `update log_partitions set committed_offset = ? where partition = ? and committed_offset < ?`;
    await postgres.raw(`${commit} ${IN_NO_ANSWER}`, [String(stored_until), assigned.partition, String(stored_until)]);
    await postgres.raw(`delete from log_records where partition = ? and "offset" < ? ${IN_NO_ANSWER}`, [
      assigned.partition,
      String(stored_until - BigInt(RETAINED_RECORDS)),
    ]);
    assigned.committed = stored_until;
    await segments?.removeSometimes().catch((error) => this.#handler.failedInBackground?.(assigned.partition, error));
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
