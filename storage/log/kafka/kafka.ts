/**
 * The event log on Apache Kafka: one topic, created by Farthing, one message per record, acknowledged by all in-sync replicas. The stores
 * decide where a partition is read from; Kafka is a log and not the archive (ARCHITECTURE.md, "The log").
 */
import { notAllowed, unavailable } from '../../../core/foundation/error.ts';
import type {
  EventLog,
  LogConsumer,
  LogDeadLetter,
  LogEntry,
  PartitionHandler,
  PartitionLag,
  PublishedSystemEvent,
} from '../log.ts';
import { KafkaAdmin } from './admin.ts';
import { COUNT_SEEN_WITHIN_MS, KafkaAppender } from './appender.ts';
import { createKafkaClient, type KafkaConnection } from './client.ts';
import { KafkaConsumer } from './consumer.ts';
import { KafkaDeadLetters } from './dead-letters.ts';
import type { LogLayout } from './layout.ts';
import { KafkaSystemEvents } from './system-events.ts';

export type KafkaLogOptions = KafkaConnection & {
  readonly topic_prefix: string;
  /** Number of partitions of a new topic; an existing topic retains its own number. */
  readonly partition_count: number;
  readonly replication: number;
  readonly retention_hours: number;
  /** `<topic_prefix>.dead-letters` when absent. */
  readonly dead_letter_topic?: string;
  readonly dead_letter_retention_hours?: number;
  /** `<topic_prefix>.system-events` when absent. */
  readonly system_event_topic?: string;
  readonly system_event_retention_hours?: number;
  readonly append_timeout_ms: number;
  readonly queued_bytes_max?: number;
  readonly linger_ms?: number;
  /** Approximate size of a batch of one partition. */
  readonly batch_bytes_max?: number;
  /** Session timeout in milliseconds: after it, a worker without heartbeats loses its partitions. */
  readonly session_timeout_ms?: number;
  /** Maximum wait for Kafka at the first start. */
  readonly open_timeout_ms?: number;
  /** Number of partitions of the topic in use; without it, all are used. */
  readonly layout?: LogLayout;
  readonly onFatal?: (error: Error) => void;
};

/**
 * Session timeout of a worker. A dead worker is replaced within 15 s: the session timeout, then a heartbeat of the other members, then the
 * reload of the partition's state.
 */
const SESSION_TIMEOUT_MS = 9_000;
const OPEN_TIMEOUT_MS = 60_000;
const READ_TIMEOUT_MS = 10_000;
const ADMIN_TIMEOUT_MS = 2_500;

export async function openKafkaLog(options: KafkaLogOptions): Promise<KafkaLog> {
  const admin = new KafkaAdmin(() => createKafkaClient(options, { requestTimeout: ADMIN_TIMEOUT_MS }));
  const { partition_count, replication, retention_hours } = options;
  const wanted = { topic: buildTopicName(options), partition_count, replication, retention_hours };
  try {
    const made = await untilAnswered(() => admin.prepareTopic(wanted), options.open_timeout_ms);
    await untilAnswered(
      () => admin.prepareTopic({ ...wanted, ...buildDeadLetterTopic(options) }),
      options.open_timeout_ms,
    );
    await untilAnswered(
      () => admin.prepareTopic({ ...wanted, ...buildSystemEventTopic(options) }),
      options.open_timeout_ms,
    );
    const used = (await options.layout?.claim(made)) ?? made;
    if (used > made)
      throw new Error(
        `configuration: ids are spread over ${used} partitions, but the topic ${wanted.topic} has ${made}: it is another topic, or was made anew`,
      );
    if (used !== partition_count)
      options.logger?.info({ topic: wanted.topic, partitions: used }, 'the event log keeps the partitions that it has');
    const log = new KafkaLog({ ...options, partition_count: used }, admin);
    await untilAnswered(() => log.connect(), options.open_timeout_ms);
    return log;
  } catch (error) {
    await admin.close();
    throw error;
  }
}

function buildTopicName({ topic_prefix }: Pick<KafkaLogOptions, 'topic_prefix'>): string {
  return `${topic_prefix}.events`;
}

/** Builds the topic for dead letters. It has as many partitions as the log, so that the partitions do not wait for each other. */
function buildDeadLetterTopic(options: KafkaLogOptions): { topic: string; retention_hours: number } {
  return {
    topic: options.dead_letter_topic ?? `${options.topic_prefix}.dead-letters`,
    retention_hours: options.dead_letter_retention_hours ?? options.retention_hours,
  };
}

function buildSystemEventTopic(options: KafkaLogOptions): { topic: string; retention_hours: number } {
  return {
    topic: options.system_event_topic ?? `${options.topic_prefix}.system-events`,
    retention_hours: options.system_event_retention_hours ?? options.retention_hours,
  };
}

export class KafkaLog implements EventLog {
  readonly partition_count: number;
  readonly #options: KafkaLogOptions;
  readonly #topic: string;
  readonly #group: string;
  readonly #admin: KafkaAdmin;
  readonly #appender: KafkaAppender;
  readonly #deadLetters: KafkaDeadLetters;
  readonly #systemEvents: KafkaSystemEvents;
  readonly #consumers = new Set<KafkaConsumer>();
  readonly #lag: () => Promise<PartitionLag[]>;
  readonly #ping: () => Promise<void>;

  constructor(options: KafkaLogOptions, admin: KafkaAdmin) {
    this.partition_count = options.partition_count;
    this.#options = options;
    this.#topic = buildTopicName(options);
    this.#group = `${options.topic_prefix}.pipeline`;
    this.#admin = admin;
    this.#appender = new KafkaAppender({
      topic: this.#topic,
      partition_count: options.partition_count,
      append_timeout_ms: options.append_timeout_ms,
      ...(options.queued_bytes_max === undefined ? {} : { queued_bytes_max: options.queued_bytes_max }),
      otherCountSeen: () => void this.#checkLayout().catch(() => {}),
      client: (requestTimeout) =>
        createKafkaClient(options, { requestTimeout, retry: { retries: 1, initialRetryTime: 50, maxRetryTime: 500 } }),
    });
    this.#deadLetters = new KafkaDeadLetters({
      topic: buildDeadLetterTopic(options).topic,
      timeout_ms: options.append_timeout_ms,
      client: () => createKafkaClient(options, { requestTimeout: this.#appender.request_timeout_ms }),
    });
    this.#systemEvents = new KafkaSystemEvents({
      topic: buildSystemEventTopic(options).topic,
      timeout_ms: options.append_timeout_ms,
      client: () => createKafkaClient(options, { requestTimeout: this.#appender.request_timeout_ms }),
    });
    this.#lag = shareInFlight(() =>
      admin.lag(this.#topic, { groupId: this.#group, partition_count: options.partition_count }),
    );
    this.#ping = shareInFlight(() => admin.ping(this.#topic, options.partition_count));
  }

  /** Size of appends that are not durable yet. */
  get queued_bytes(): number {
    return this.#appender.queued_bytes;
  }

  async connect(): Promise<void> {
    await this.#appender.connect();
  }

  append(entries: readonly LogEntry[]): Promise<readonly bigint[]> {
    return this.#appender.append(entries);
  }

  async consume(handler: PartitionHandler): Promise<LogConsumer> {
    const options = this.#options;
    const consumer = new KafkaConsumer(handler, {
      topic: this.#topic,
      partition_count: this.partition_count,
      group_id: this.#group,
      session_timeout_ms: options.session_timeout_ms ?? SESSION_TIMEOUT_MS,
      linger_ms: options.linger_ms ?? 250,
      batch_bytes_max: options.batch_bytes_max ?? 8 * 1024 * 1024,
      logger: options.logger,
      client: () => createKafkaClient(options, { requestTimeout: READ_TIMEOUT_MS }),
      bounds: () => this.#admin.bounds(this.#topic),
      checkLayout: () => this.#checkLayout(),
      onFatal: (error) => this.#fatal(error),
    });
    this.#consumers.add(consumer);
    try {
      await untilAnswered(() => consumer.start(), options.open_timeout_ms);
    } catch (error) {
      await consumer.stop();
      this.#consumers.delete(consumer);
      throw unavailable('the event log', error);
    }
    return {
      stop: async () => {
        this.#consumers.delete(consumer);
        await consumer.stop();
      },
    };
  }

  publishDeadLetters(letters: readonly LogDeadLetter[]): Promise<void> {
    return this.#deadLetters.send(letters);
  }

  publishSystemEvents(events: readonly PublishedSystemEvent[]): Promise<void> {
    return this.#systemEvents.send(events);
  }

  lag(): Promise<PartitionLag[]> {
    return this.#lag();
  }

  ping(): Promise<void> {
    return this.#ping();
  }

  /**
   * Adds partitions to the topic of a drained log (grow.ts); this instance keeps its original count. Resolves when no producer with the old
   * count appends any more: each has seen the new count and rejects appends, and its sends in flight have arrived or timed out.
   */
  async addPartitions(to: number): Promise<void> {
    await this.checkNobodyReads();
    await this.#admin.addPartitions(this.#topic, to);
    await new Promise((resolve) => setTimeout(resolve, COUNT_SEEN_WITHIN_MS + this.#appender.request_timeout_ms));
  }

  async checkNobodyReads(): Promise<void> {
    const members = await this.#admin.members(this.#group);
    if (members > 0) throw notAllowed(`${members} workers still run: stop every API and pipeline process first`);
  }

  /** Ends the process if partitions were added since its start, because its appends and reads would use the wrong partitions. */
  async #checkLayout(): Promise<void> {
    const used = (await this.#options.layout?.read()) ?? this.partition_count;
    if (used === this.partition_count) return;
    const why = `the event log has ${used} partitions now, this process began with ${this.partition_count}`;
    this.#fatal(new Error(`${why}: it ends, to be started again`));
    throw unavailable(`the event log (${why})`);
  }

  #fatal(error: Error): void {
    (this.#options.onFatal ?? endProcess)(error);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.stop()));
    await Promise.all([this.#appender.close(), this.#deadLetters.close(), this.#systemEvents.close()]);
    await this.#admin.close();
  }
}

/**
 * Shares a query between callers: only one runs at a time. A call during a running query waits for the next one, so that no answer is older
 * than its call.
 */
export function shareInFlight<Answer>(query: () => Promise<Answer>): () => Promise<Answer> {
  let asking: Promise<unknown> = Promise.resolve();
  let next: Promise<Answer> | null = null;
  return () => {
    next ??= asking
      .catch(() => {})
      .then(() => {
        next = null;
        const answer = query();
        asking = answer;
        return answer;
      });
    return next;
  };
}

/** Retries while the cluster starts or changes its leaders. */
async function untilAnswered<Answer>(query: () => Promise<Answer>, patience_ms = OPEN_TIMEOUT_MS): Promise<Answer> {
  const until = performance.now() + patience_ms;
  for (;;) {
    try {
      return await query();
    } catch (error) {
      if (performance.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

/** Throws an error that nothing handles: the process ends with its stack, and its supervisor starts another process. */
function endProcess(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}
