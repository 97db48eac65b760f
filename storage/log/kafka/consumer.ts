/**
 * Consumes the log on Kafka. kafkajs fetches and heartbeats; each partition has a loop that takes one batch at a time and pauses the
 * partition meanwhile, so neither heartbeats nor other partitions wait. The stores decide where to read; commits only report progress. If
 * the topic may be a new one (after a join, a failed fetch or a long pause), the next fetch begins one record earlier: that record must be
 * the last processed one (continuity.ts). A partition is lost to another member, with a new member id, or after unanswered heartbeats for
 * the session timeout; the epoch in Postgres rejects later writes.
 */
import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import type { Logger } from 'pino';
import { checkBounds, checkSameLog, PartitionStopped, pauseAfter, recordCrc } from '../continuity.ts';
import type { LogRecord, PartitionHandler } from '../log.ts';
import type { PartitionBounds } from './admin.ts';
import { buildStickyAssigner } from './assigner.ts';
import { KafkaCommits } from './commits.ts';
import { KafkaEnds } from './ends.ts';
import { parseRecords } from './records.ts';

type KafkaConsumerOptions = {
  readonly topic: string;
  readonly partition_count: number;
  readonly group_id: string;
  readonly session_timeout_ms: number;
  /** Time for which records are gathered after a small batch. */
  readonly linger_ms: number;
  readonly batch_bytes_max: number;
  readonly logger: Logger | undefined;
  client(): Kafka;
  bounds(): Promise<readonly PartitionBounds[]>;
  /** Rejects if partitions were added after this process started. */
  checkLayout(): Promise<void>;
  /** Reports that the consumer has failed repeatedly; a new process may succeed. */
  onFatal(error: Error): void;
};

type KafkaAssignedPartition = {
  readonly partition: number;
  stored_until: bigint;
  read_from: bigint;
  /** Checksum (`recordCrc`) of the record before `read_from`; null if unknown. */
  before: number | null;
  /** Whether the next fetch begins with the record before `read_from`, to compare its checksum. */
  check: boolean;
  /** Consecutive fetches without a record from `read_from` on. */
  stale: number;
  lost: boolean;
  /** Set while the loop waits for records. */
  take: ((records: LogRecord[] | null) => void) | null;
  fail: ((error: Error) => void) | null;
};

/** Minimum size of the answer to a fetch, unless the linger time is over. */
const FETCH_BYTES_MIN = 8 * 1024 * 1024;
const CRASHES_BEFORE_EXIT = 8;
/** Number of stale fetches after which the topic is assumed to have changed. A seek alone causes at most one, already in flight. */
const STALE_FETCHES_MAX = 5;
/** Processing time of a batch above which the next fetch checks the topic. Nobody can recreate and refill a topic in less. */
const UNWATCHED_MS_MAX = 2_000;

export class KafkaConsumer {
  readonly #handler: PartitionHandler;
  readonly #options: KafkaConsumerOptions;
  readonly #assigned = new Map<number, KafkaAssignedPartition>();
  /** The loop of each partition; a new loop begins after the old one has ended. */
  readonly #loops = new Map<number, Promise<void>>();
  readonly #commits: KafkaCommits;
  readonly #ends: KafkaEnds;
  readonly #sleepers = new Set<() => void>();
  /** Brokers with a fetch in flight. */
  readonly #fetching = new Set<number>();
  #consumer: Consumer | null = null;
  #memberId = '';
  #aliveUntil = 0;
  #crashes = 0;
  #stopping = false;

  constructor(handler: PartitionHandler, options: KafkaConsumerOptions) {
    this.#handler = handler;
    this.#options = options;
    const isStopping = () => this.#stopping;
    this.#commits = new KafkaCommits({
      ...options,
      isStopping,
      consumer: () => this.#consumer,
      pause: (ms) => this.#sleep(ms),
    });
    this.#ends = new KafkaEnds({
      bounds: options.bounds,
      waiting: () => (isStopping() ? null : [...this.#assigned.values()].filter(({ take }) => take !== null)),
    });
  }

  async start(): Promise<void> {
    const { topic, partition_count, group_id, session_timeout_ms, linger_ms, batch_bytes_max } = this.#options;
    const consumer = this.#options.client().consumer({
      groupId: group_id,
      sessionTimeout: session_timeout_ms,
      heartbeatInterval: Math.floor(session_timeout_ms / 6),
      rebalanceTimeout: 2 * session_timeout_ms,
      partitionAssigners: [buildStickyAssigner(() => [...this.#assigned.keys()], partition_count)],
      allowAutoTopicCreation: false,
      minBytes: linger_ms > 0 ? FETCH_BYTES_MIN : 1,
      maxWaitTimeInMs: Math.max(10, linger_ms),
      maxBytesPerPartition: batch_bytes_max,
      maxBytes: 4 * batch_bytes_max,
      metadataMaxAge: 60_000,
      // The retries outlast the reassignment of a dead broker's partitions (about 10 s): a consumer that crashes loses its own partitions.
      retry: { retries: 40, initialRetryTime: 100, maxRetryTime: 500 },
    });
    try {
      await consumer.connect();
      await consumer.subscribe({ topic, fromBeginning: true });
    } catch (error) {
      await consumer.disconnect().catch(() => {});
      throw error;
    }
    if (this.#stopping) return void consumer.disconnect().catch(() => {});
    this.#consumer = consumer;
    this.#listen(consumer);
    // This call is not awaited: joining may take until the group has noticed dead members. A failure is handled as a crash.
    consumer
      .run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: async (of) => this.#arrived(of) })
      .catch((error: Error) => this.#crashed(consumer, error, false));
  }

  /** Finishes the current batches, commits, and leaves the group. */
  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#wake();
    await Promise.all(this.#loops.values());
    await this.#commits.waitForCommits();
    const consumer = this.#consumer;
    this.#consumer = null;
    await consumer?.disconnect().catch(() => {});
  }

  #listen(consumer: Consumer): void {
    const { GROUP_JOIN, HEARTBEAT, CRASH, FETCH_START, FETCH } = consumer.events;
    consumer.on(GROUP_JOIN, ({ payload }) => {
      if (consumer === this.#consumer)
        this.#joined(payload.memberId, payload.memberAssignment[this.#options.topic] ?? []);
    });
    consumer.on(HEARTBEAT, () => {
      if (consumer === this.#consumer) this.#alive();
    });
    consumer.on(FETCH_START, ({ payload }) => {
      if (this.#fetching.has(payload.nodeId)) this.#doubt();
      this.#fetching.add(payload.nodeId);
    });
    consumer.on(FETCH, ({ payload }) => void this.#fetching.delete(payload.nodeId));
    consumer.on(CRASH, ({ payload }) => {
      this.#crashed(consumer, payload.error, payload.restart);
    });
  }

  #alive(): void {
    // The group counts from its receipt of the heartbeat, which precedes our answer: we must not assume a longer session.
    this.#aliveUntil = performance.now() + (this.#options.session_timeout_ms * 5) / 6;
  }

  /** Called when the consumer joins, before any fetch. Pauses partitions whose loop is not ready to take records. */
  #joined(memberId: string, partitions: readonly number[]): void {
    if (memberId !== this.#memberId) this.#loseAll();
    this.#memberId = memberId;
    this.#alive();
    for (const assigned of [...this.#assigned.values()])
      if (!partitions.includes(assigned.partition)) this.#lose(assigned);
    for (const partition of partitions) {
      const assigned = this.#assigned.get(partition);
      if (!assigned?.take) this.#pause(partition);
      if (!assigned && !this.#stopping) this.#begin(partition);
    }
    this.#doubt();
  }

  /** Requires a check of the next records: they may be of a new or shortened topic, which Kafka does not report. */
  #doubt(): void {
    for (const assigned of this.#assigned.values()) {
      assigned.check = assigned.before !== null;
      if (assigned.take) this.#fetchFrom(assigned);
    }
    this.#ends.check();
  }

  #begin(partition: number): void {
    const progress = { stored_until: 0n, read_from: 0n, before: null, check: false, stale: 0 };
    const assigned: KafkaAssignedPartition = { partition, ...progress, lost: false, take: null, fail: null };
    this.#assigned.set(partition, assigned);
    const before = this.#loops.get(partition) ?? Promise.resolve();
    const loop: Promise<void> = before
      .then(() => this.#run(assigned))
      .finally(() => {
        if (this.#loops.get(partition) === loop) this.#loops.delete(partition);
      });
    this.#loops.set(partition, loop);
  }

  #lose(assigned: KafkaAssignedPartition): void {
    assigned.lost = true;
    this.#assigned.delete(assigned.partition);
    this.#commits.discard(assigned.partition);
    assigned.take?.(null);
    this.#wake();
  }

  #loseAll(): void {
    for (const assigned of [...this.#assigned.values()]) this.#lose(assigned);
  }

  /** Handles a failure of the consumer. kafkajs restarts it after transient errors; after any other error a new consumer is created. */
  #crashed(consumer: Consumer, error: Error, restarts: boolean): void {
    if (consumer !== this.#consumer) return;
    this.#options.logger?.warn({ err: error, restarts }, 'the consumer of the event log failed');
    if (restarts || this.#stopping) return;
    this.#loseAll();
    this.#consumer = null;
    if (++this.#crashes >= CRASHES_BEFORE_EXIT) {
      this.#options.onFatal(error);
      return;
    }
    void consumer.disconnect().catch(() => {});
    void this.#startAgain();
  }

  async #startAgain(): Promise<void> {
    for (let tries = this.#crashes; !this.#stopping; tries++) {
      await this.#sleep(Math.min(5_000, 500 * tries));
      if (this.#stopping) return;
      try {
        return await this.start();
      } catch (error) {
        this.#options.logger?.warn({ err: error }, 'the consumer of the event log does not start yet');
      }
    }
  }

  #owns(assigned: KafkaAssignedPartition): boolean {
    return !assigned.lost && performance.now() < this.#aliveUntil;
  }

  /** Runs one partition while it is assigned: assigned, batches, revoked. After a failure it restarts at the offset of the stores. */
  async #run(assigned: KafkaAssignedPartition): Promise<void> {
    let isReady = false;
    let failures = 0;
    while (!this.#stopping && !assigned.lost) {
      try {
        if (!isReady) {
          if (!this.#owns(assigned)) {
            await this.#sleep(200); // Heartbeats are overdue: taking over now could fence off the true owner.
            continue;
          }
          await this.#startWhereTheStoresAre(assigned);
          isReady = true;
        }
        const records = await this.#nextRecords(assigned);
        if (records === null) continue;
        await this.#deliver(assigned, records);
        failures = 0;
        this.#crashes = 0;
      } catch (error) {
        isReady = false;
        failures++;
        this.#handler.failed?.(assigned.partition, error);
        await this.#sleep(pauseAfter(error, failures));
      }
    }
    if (!assigned.lost) this.#assigned.delete(assigned.partition);
    await this.#handler.revoked(assigned.partition);
  }

  async #startWhereTheStoresAre(assigned: KafkaAssignedPartition): Promise<void> {
    const { partition } = assigned;
    const position = await this.#handler.assigned(partition);
    // The layout is checked after `assigned` took the partition: growth blocks takeovers before it checks for earlier ones (grow.ts).
    await this.#options.checkLayout();
    const bounds = (await this.#options.bounds()).find((each) => each.partition === partition);
    if (!bounds) throw new PartitionStopped(partition, 'the event log does not have it any more');
    checkBounds(partition, position, bounds);
    Object.assign(assigned, { stored_until: position.next_offset, read_from: position.next_offset, stale: 0 });
    assigned.before = position.next_offset > bounds.low ? position.last_record : null;
    assigned.check = assigned.before !== null;
    if (!assigned.lost) this.#commits.later(partition, position.next_offset);
    if (position.next_offset === bounds.end && !assigned.check) this.#handler.caughtUp?.(partition);
  }

  #nextRecords(assigned: KafkaAssignedPartition): Promise<LogRecord[] | null> {
    if (assigned.lost || this.#stopping) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      const done = () => {
        assigned.take = null;
        assigned.fail = null;
      };
      assigned.take = (records) => {
        done();
        resolve(records);
      };
      assigned.fail = (error) => {
        done();
        reject(error);
      };
      this.#fetchFrom(assigned);
    });
  }

  #fetchFrom({ partition, read_from, check }: KafkaAssignedPartition): void {
    const { topic } = this.#options;
    this.#withConsumer((consumer) => {
      consumer.seek({ topic, partition, offset: String(check ? read_from - 1n : read_from) });
      consumer.resume([{ topic, partitions: [partition] }]);
    });
  }

  #pause(partition: number): void {
    this.#withConsumer((consumer) => consumer.pause([{ topic: this.#options.topic, partitions: [partition] }]));
  }

  /** Calls the consumer, unless it is restarting and accepts no calls; after the join all calls are made again. */
  #withConsumer(what: (consumer: Consumer) => void): void {
    try {
      if (this.#consumer) what(this.#consumer);
    } catch (error) {
      this.#options.logger?.debug({ err: error }, 'the consumer of the event log is starting anew');
    }
  }

  /** Passes a fetched batch to the loop of the partition, if the loop waits for records from this offset on. */
  #arrived({ batch, isRunning }: EachBatchPayload): void {
    const assigned = this.#assigned.get(batch.partition);
    if (!assigned?.take || !isRunning()) return;
    try {
      const records = this.#recordsFor(assigned, batch);
      if (records.length === 0) return this.#fetchFrom(assigned);
      this.#pause(batch.partition);
      assigned.take(records);
    } catch (error) {
      this.#pause(batch.partition);
      assigned.fail!(error as Error);
    }
  }

  /** Records that the loop waits for; none if the fetch was for another offset. */
  #recordsFor(
    assigned: KafkaAssignedPartition,
    { partition, messages, highWatermark }: EachBatchPayload['batch'],
  ): LogRecord[] {
    const { read_from, before, check } = assigned;
    const from = check ? read_from - 1n : read_from;
    // A batch without the preceding record was fetched before the check needed that record, so it is stale.
    const isStale = check && !messages.some(({ offset }) => BigInt(offset) === from);
    const { partition_count } = this.#options;
    const range = { partition, partition_count, from, processed_from: read_from };
    const found = isStale ? [] : parseRecords(messages, range);
    if (found.length === 0) {
      if (++assigned.stale <= STALE_FETCHES_MAX) return [];
      const got = messages.at(-1)?.offset;
      throw new Error(`partition ${partition}: asked for offset ${from}, got ${got} again and again`);
    }
    assigned.stale = 0;
    if (!check) return found;
    checkSameLog(partition, { next_offset: read_from, last_record: before }, recordCrc(found[0]!));
    assigned.check = false;
    if (read_from === BigInt(highWatermark)) this.#handler.caughtUp?.(partition);
    return found.slice(1);
  }

  async #deliver(assigned: KafkaAssignedPartition, records: LogRecord[]): Promise<void> {
    const began = performance.now();
    const { stored_until, read_from } = await this.#handler.process({
      partition: assigned.partition,
      records,
      isOwner: () => this.#owns(assigned),
      heartbeat: async () => {}, // kafkajs continues to fetch other partitions or to wait, and sends heartbeats meanwhile.
    });
    const last = records.at(-1)!;
    assigned.before = last.offset + 1n === read_from ? recordCrc(last) : null;
    assigned.check = assigned.before !== null && (assigned.check || performance.now() - began > UNWATCHED_MS_MAX);
    assigned.read_from = read_from;
    if (stored_until === assigned.stored_until) return;
    assigned.stored_until = stored_until;
    if (!assigned.lost) this.#commits.later(assigned.partition, stored_until);
  }

  #wake(): void {
    for (const sleeper of [...this.#sleepers]) sleeper();
    if (this.#stopping) for (const assigned of this.#assigned.values()) assigned.take?.(null);
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#sleepers.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#sleepers.add(done);
    });
  }
}
