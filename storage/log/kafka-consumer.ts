/**
 * The consuming side of the log on Kafka. kafkajs fetches and keeps us in the group; each partition has a loop of its own,
 * which takes one batch at a time: while it works the partition is paused, so neither the heartbeats nor the other
 * partitions wait for it. Where to read is decided by the handler, that is by the stores; commits only tell others how far
 * we are.
 *
 * A partition is lost when the group gives it to another, when the group has forgotten us (a new member id: somebody may
 * have had it meanwhile), or when our heartbeats have not been answered for as long as the group waits for them. What is
 * written after that is refused by the epoch in Postgres.
 */
import type { Consumer, EachBatchPayload, Kafka, KafkaMessage } from 'kafkajs';
import type { Logger } from 'pino';
import type { PartitionBounds } from './kafka-admin.ts';
import { keepingAssigner } from './kafka-assigner.ts';
import type { LogRecord, PartitionHandler } from './log.ts';

export type KafkaConsumerOptions = {
  readonly topic: string;
  readonly partition_count: number;
  readonly group_id: string;
  readonly session_timeout_ms: number;
  /** A trickle of records is gathered this long before it is handed on. */
  readonly linger_ms: number;
  readonly batch_bytes_max: number;
  readonly logger: Logger | undefined;
  client(): Kafka;
  bounds(): Promise<readonly PartitionBounds[]>;
  /** Rejects when partitions were added since this process began. */
  checkLayout(): Promise<void>;
  /** The consumer has failed again and again: a new process may do better. */
  onFatal(error: Error): void;
};

type Held = {
  readonly partition: number;
  next_offset: bigint;
  lost: boolean;
  /** Set while the loop waits for records. */
  take: ((records: LogRecord[] | null) => void) | null;
  fail: ((error: Error) => void) | null;
};

/** A fetch is answered when so much is there, or when the linger is over. */
const FETCH_BYTES_MIN = 8 * 1024 * 1024;
const CRASHES_BEFORE_EXIT = 8;

export class KafkaConsumer {
  readonly #handler: PartitionHandler;
  readonly #options: KafkaConsumerOptions;
  readonly #held = new Map<number, Held>();
  /** The loop of each partition: a new one begins when the old one has ended. */
  readonly #loops = new Map<number, Promise<void>>();
  readonly #uncommitted = new Map<number, bigint>();
  readonly #sleepers = new Set<() => void>();
  #consumer: Consumer | null = null;
  #committing: Promise<void> | null = null;
  #memberId = '';
  #aliveUntil = 0;
  #crashes = 0;
  #stopping = false;

  constructor(handler: PartitionHandler, options: KafkaConsumerOptions) {
    this.#handler = handler;
    this.#options = options;
  }

  async start(): Promise<void> {
    const { topic, partition_count, group_id, session_timeout_ms, linger_ms, batch_bytes_max } = this.#options;
    const consumer = this.#options.client().consumer({
      groupId: group_id,
      sessionTimeout: session_timeout_ms,
      heartbeatInterval: Math.floor(session_timeout_ms / 6),
      rebalanceTimeout: 2 * session_timeout_ms,
      partitionAssigners: [keepingAssigner(() => [...this.#held.keys()], partition_count)],
      allowAutoTopicCreation: false,
      minBytes: linger_ms > 0 ? FETCH_BYTES_MIN : 1,
      maxWaitTimeInMs: Math.max(10, linger_ms),
      maxBytesPerPartition: batch_bytes_max,
      maxBytes: 4 * batch_bytes_max,
      metadataMaxAge: 60_000,
      // Longer than the cluster needs to give the partitions of a dead broker to another, about 10 s: a crash would cost us ours.
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
    // Not awaited: joining takes as long as the group takes to notice who has died, and what fails is a crash like others.
    consumer
      .run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: async (of) => this.#arrived(of) })
      .catch((error: Error) => this.#crashed(consumer, error, false));
  }

  /** Finishes what is in hand, tells how far we are, leaves the group. */
  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#wake();
    await Promise.all(this.#loops.values());
    await this.#committing;
    const consumer = this.#consumer;
    this.#consumer = null;
    await consumer?.disconnect().catch(() => {});
  }

  #listen(consumer: Consumer): void {
    const { GROUP_JOIN, HEARTBEAT, CRASH } = consumer.events;
    consumer.on(GROUP_JOIN, ({ payload }) => {
      if (consumer === this.#consumer)
        this.#joined(payload.memberId, payload.memberAssignment[this.#options.topic] ?? []);
    });
    consumer.on(HEARTBEAT, () => {
      if (consumer === this.#consumer) this.#alive();
    });
    consumer.on(CRASH, ({ payload }) => {
      this.#crashed(consumer, payload.error, payload.restart);
    });
  }

  #alive(): void {
    // The group counts from when it has the heartbeat, which is before we have the answer: we must not think us alive longer.
    this.#aliveUntil = performance.now() + (this.#options.session_timeout_ms * 5) / 6;
  }

  /** Runs within the join, before anything is fetched: what is not waiting for records is paused. */
  #joined(memberId: string, assigned: readonly number[]): void {
    if (memberId !== this.#memberId) this.#loseAll();
    this.#memberId = memberId;
    this.#alive();
    for (const held of [...this.#held.values()]) if (!assigned.includes(held.partition)) this.#lose(held);
    for (const partition of assigned) {
      const held = this.#held.get(partition);
      if (held?.take) this.#fetchFrom(held);
      else this.#pause(partition);
      if (!held && !this.#stopping) this.#begin(partition);
    }
  }

  #begin(partition: number): void {
    const held: Held = { partition, next_offset: 0n, lost: false, take: null, fail: null };
    this.#held.set(partition, held);
    const before = this.#loops.get(partition) ?? Promise.resolve();
    const loop: Promise<void> = before
      .then(() => this.#run(held))
      .finally(() => {
        if (this.#loops.get(partition) === loop) this.#loops.delete(partition);
      });
    this.#loops.set(partition, loop);
  }

  #lose(held: Held): void {
    held.lost = true;
    this.#held.delete(held.partition);
    this.#uncommitted.delete(held.partition);
    held.take?.(null);
    this.#wake();
  }

  #loseAll(): void {
    for (const held of [...this.#held.values()]) this.#lose(held);
  }

  /** kafkajs starts anew by itself after what may pass, and ends after the rest: then we make a new consumer. */
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

  #owns(held: Held): boolean {
    return !held.lost && performance.now() < this.#aliveUntil;
  }

  /** The life of one partition with us: assigned, batches, revoked. A failed batch is tried again from where the stores are. */
  async #run(held: Held): Promise<void> {
    let assigned = false;
    let failures = 0;
    while (!this.#stopping && !held.lost) {
      try {
        if (!assigned) {
          if (!this.#owns(held)) {
            await this.#sleep(200); // Not heard of for too long: taking over now would throw out the true owner.
            continue;
          }
          held.next_offset = await this.#handler.assigned(held.partition);
          // Behind it: who adds partitions keeps others from taking one before it looks whether somebody has (grow.ts).
          await this.#options.checkLayout();
          await this.#checkBounds(held);
          this.#commitLater(held);
          assigned = true;
        }
        const records = await this.#nextRecords(held);
        if (records === null) continue;
        await this.#handOver(held, records);
        failures = 0;
        this.#crashes = 0;
      } catch (error) {
        assigned = false;
        failures++;
        this.#handler.failed?.(held.partition, error);
        await this.#sleep(Math.min(5_000, 100 * 2 ** Math.min(failures, 6)));
      }
    }
    if (!held.lost) this.#held.delete(held.partition);
    await this.#handler.revoked(held.partition);
  }

  /** Records that retention has taken, or that a broken cluster has lost, are said and never stepped over. */
  async #checkBounds({ partition, next_offset }: Held): Promise<void> {
    const bounds = (await this.#options.bounds()).find((each) => each.partition === partition);
    if (!bounds) throw new Error(`the event log has no partition ${partition} any more`);
    const why =
      next_offset < bounds.low
        ? `the log begins at offset ${bounds.low}: what stands between was deleted before it was processed`
        : `the log ends at offset ${bounds.end}: it has lost records, or is another log`;
    if (next_offset < bounds.low || next_offset > bounds.end) {
      throw new Error(
        `partition ${partition}: the stores are at offset ${next_offset}, but ${why} (docs/operations.md)`,
      );
    }
  }

  #nextRecords(held: Held): Promise<LogRecord[] | null> {
    if (held.lost || this.#stopping) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      const done = () => {
        held.take = null;
        held.fail = null;
      };
      held.take = (records) => {
        done();
        resolve(records);
      };
      held.fail = (error) => {
        done();
        reject(error);
      };
      this.#fetchFrom(held);
    });
  }

  #fetchFrom({ partition, next_offset }: Held): void {
    const { topic } = this.#options;
    this.#tell((consumer) => {
      consumer.seek({ topic, partition, offset: String(next_offset) });
      consumer.resume([{ topic, partitions: [partition] }]);
    });
  }

  #pause(partition: number): void {
    this.#tell((consumer) => consumer.pause([{ topic: this.#options.topic, partitions: [partition] }]));
  }

  /** A consumer that is just starting anew listens to nobody; when it has joined it hears everything again. */
  #tell(what: (consumer: Consumer) => void): void {
    try {
      if (this.#consumer) what(this.#consumer);
    } catch (error) {
      this.#options.logger?.debug({ err: error }, 'the consumer of the event log is starting anew');
    }
  }

  /** Called by kafkajs with what it has fetched: handed to the loop of the partition if it waits for exactly that. */
  #arrived({ batch, isRunning }: EachBatchPayload): void {
    const held = this.#held.get(batch.partition);
    if (!held?.take || !isRunning()) return;
    const messages = batch.messages.filter(({ offset }) => BigInt(offset) >= held.next_offset);
    if (messages.length === 0) return this.#fetchFrom(held);
    this.#pause(batch.partition);
    const stray = messages.find((message) => !this.#isSpreadAsOurs(message));
    if (stray) return held.fail!(this.#strayError(batch.partition, stray));
    const next = messages.map((message) => recordOf(batch.partition, message));
    if (next[0]!.offset === held.next_offset) return held.take(next);
    held.fail!(new Error(`partition ${batch.partition}: asked for offset ${held.next_offset}, got ${next[0]!.offset}`));
  }

  /** Spread over another number of partitions, an id would be looked for on the wrong one, and could count twice. */
  #isSpreadAsOurs({ headers }: KafkaMessage): boolean {
    const count = headers?.partitions?.toString();
    return count === undefined || Number(count) === this.#options.partition_count;
  }

  #strayError(partition: number, { offset, headers }: KafkaMessage): Error {
    return new Error(
      `partition ${partition}: the record at offset ${offset} was spread over ${String(headers!.partitions)} partitions, but ${this.#options.partition_count} are in use (docs/operations.md)`,
    );
  }

  async #handOver(held: Held, records: LogRecord[]): Promise<void> {
    const next = await this.#handler.process({
      partition: held.partition,
      records,
      isOwner: () => this.#owns(held),
      heartbeat: async () => {}, // kafkajs goes on fetching other partitions, or waiting, and with that its heartbeats.
    });
    held.next_offset = next;
    this.#commitLater(held);
  }

  #commitLater(held: Held): void {
    if (held.lost) return;
    this.#uncommitted.set(held.partition, held.next_offset);
    this.#committing ??= this.#commit().finally(() => {
      this.#committing = null;
    });
  }

  /** Several partitions in one request. The stores know better, but others see by the commits how far we are. */
  async #commit(): Promise<void> {
    const { topic, logger } = this.#options;
    await Promise.resolve(); // What the other loops have done in the same moment goes along.
    while (this.#uncommitted.size > 0) {
      const taken = [...this.#uncommitted];
      this.#uncommitted.clear();
      try {
        await this.#consumer!.commitOffsets(
          taken.map(([partition, next]) => ({ topic, partition, offset: String(next) })),
        );
      } catch (error) {
        logger?.info({ err: error }, 'a commit to the event log failed');
        if (this.#stopping) return;
        await this.#sleep(500);
        for (const [partition, next] of taken)
          if (this.#held.has(partition) && !this.#uncommitted.has(partition)) this.#uncommitted.set(partition, next);
      }
    }
  }

  #wake(): void {
    for (const sleeper of [...this.#sleepers]) sleeper();
    if (this.#stopping) for (const held of this.#held.values()) held.take?.(null);
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

function recordOf(partition: number, { offset, value, headers }: KafkaMessage): LogRecord {
  const header = (name: string) => headers?.[name]?.toString() ?? '';
  const made = header('made_ids');
  return {
    partition,
    offset: BigInt(offset),
    kind: header('kind') as LogRecord['kind'],
    tenant_id: header('tenant_id'),
    environment_id: header('environment_id'),
    received_at_us: Number(header('received_at_us')),
    made_ids: made === '' ? null : JSON.parse(made),
    event_count: Number(header('event_count')),
    body: value ?? Buffer.alloc(0),
  };
}
