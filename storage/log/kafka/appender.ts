/**
 * The producer of the log on Kafka. Appends that arrive while sends are in flight are gathered and sent together, one request per broker.
 * Memory is bounded. An append that is not durable within its timeout is rejected with 503.
 *
 * Two rules prevent the loss of acknowledged records with kafkajs 2.2.4. The producer is not idempotent: with several sends in flight, an
 * idempotent one drops messages although every promise resolves. And an answer counts only for the partitions that it names: after a change
 * of leaders, kafkajs can resolve a send of which a part never left, because the new leader had already answered for other partitions.
 * Repeated sends create duplicates, which event identity removes.
 */
import type { IHeaders, Kafka, Message, Producer, RecordMetadata } from 'kafkajs';
import { FarthingError, unavailable } from '../../../core/foundation/error.ts';
import type { LogEntry } from '../log.ts';
import { toPartitionCountFailure } from './admin.ts';

type AppenderOptions = {
  readonly topic: string;
  readonly partition_count: number;
  readonly append_timeout_ms: number;
  readonly queued_bytes_max?: number;
  /** Reports that the number of partitions of the topic differs from `partition_count`. */
  otherCountSeen(): void;
  /** Creates a client whose requests time out after this bound. */
  client(request_timeout_ms: number): Kafka;
};

/** The limit is below the broker's 16 MiB per partition and request. */
export const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;
const QUEUED_BYTES_MAX = 256 * 1024 * 1024;
const GROUP_BYTES_MAX = 16 * 1024 * 1024;
/**
 * Maximum number of messages per request. kafkajs copies the messages of a partition for each that it adds, which takes minutes for a
 * hundred thousand.
 */
const GROUP_MESSAGES_MAX = 2_000;
const SENDS_IN_FLIGHT = 4;
/** Maximum age of the topic metadata at a send. */
export const COUNT_SEEN_WITHIN_MS = 3_000;
/** Number of consecutive failures after which the client is replaced, because its view of the cluster may be unusable. */
const FAILURES_BEFORE_RENEWAL = 5;

type Append = {
  readonly bytes: number;
  /** Number of entries that are not durable yet. */
  missing: number;
  /** Offsets of the durable entries, in the order of the entries. */
  readonly offsets: bigint[];
  settled: boolean;
  settle(error?: unknown): void;
};
type AppendItem = { readonly append: Append; readonly entry: LogEntry; readonly index: number };

export class KafkaAppender {
  readonly #options: AppenderOptions;
  readonly #queue: AppendItem[][] = [];
  readonly #sending = new Set<Promise<void>>();
  #queuedBytes = 0;
  #failures = 0;
  #producer: Promise<Producer> | null = null;

  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  /** Size of waiting and in-flight appends. */
  get queued_bytes(): number {
    return this.#queuedBytes;
  }

  async connect(): Promise<void> {
    await this.#connected();
  }

  append(entries: readonly LogEntry[]): Promise<readonly bigint[]> {
    if (entries.length === 0) return Promise.resolve([]);
    const fault = this.#faultOf(entries);
    if (fault) return Promise.reject(fault);
    const bytes = entries.reduce((total, entry) => total + entry.body.length, 0);
    if (this.#queuedBytes + bytes > (this.#options.queued_bytes_max ?? QUEUED_BYTES_MAX))
      return Promise.reject(unavailable('the event log (its queue is full)'));
    return new Promise((resolve, reject) => {
      const append = this.#newAppend(bytes, entries.length, (error) =>
        error ? reject(error as Error) : resolve(append.offsets),
      );
      this.#queuedBytes += bytes;
      this.#queue.push(entries.map((entry, index) => ({ append, entry, index })));
      this.#pump();
    });
  }

  /** Waits for sends in flight; starts no new ones. */
  async close(): Promise<void> {
    while (this.#sending.size > 0) await Promise.allSettled(this.#sending);
    const producer = this.#producer;
    this.#producer = null;
    await producer?.then((open) => open.disconnect()).catch(() => {});
  }

  #faultOf(entries: readonly LogEntry[]): Error | undefined {
    for (const entry of entries) {
      if (!(entry.partition >= 0 && entry.partition < this.#options.partition_count))
        return new Error(`the event log has no partition ${entry.partition}`);
      if (entry.body.length > MESSAGE_BYTES_MAX)
        return new FarthingError(
          'validation_error',
          `a record of the event log holds ${MESSAGE_BYTES_MAX} bytes at most`,
        );
    }
    return undefined;
  }

  #newAppend(bytes: number, missing: number, answer: (error?: unknown) => void): Append {
    const timer = setTimeout(() => append.settle(unavailable('the event log')), this.#options.append_timeout_ms);
    const append: Append = {
      bytes,
      missing,
      offsets: [],
      settled: false,
      settle: (error) => {
        if (append.settled) return;
        append.settled = true;
        clearTimeout(timer);
        if (error !== undefined) this.#dropFromQueue(append);
        answer(error);
      },
    };
    return append;
  }

  /** Removes an unsent append after its caller has given up. */
  #dropFromQueue(append: Append): void {
    const at = this.#queue.findIndex((items) => items[0]!.append === append);
    if (at < 0) return;
    this.#queue.splice(at, 1);
    this.#queuedBytes -= append.bytes;
  }

  #pump(): void {
    while (this.#queue.length > 0 && this.#sending.size < SENDS_IN_FLIGHT) {
      const group = this.#takeGroup();
      const sending: Promise<void> = this.#sendGroup(group.flat()).finally(() => {
        for (const items of group) this.#queuedBytes -= items[0]!.append.bytes;
        this.#sending.delete(sending);
        this.#pump();
      });
      this.#sending.add(sending);
    }
  }

  #takeGroup(): AppendItem[][] {
    const group: AppendItem[][] = [];
    const perPartition = new Map<number, number>();
    let bytes = 0;
    let messages = 0;
    for (;;) {
      const next = this.#queue[0];
      if (!next) return group;
      bytes += next[0]!.append.bytes;
      messages += next.length;
      let largest = 0;
      for (const { entry } of next) {
        const inPartition = (perPartition.get(entry.partition) ?? 0) + entry.body.length;
        perPartition.set(entry.partition, inPartition);
        largest = Math.max(largest, inPartition);
      }
      const isTooMuch = bytes > GROUP_BYTES_MAX || messages > GROUP_MESSAGES_MAX || largest > MESSAGE_BYTES_MAX;
      if (isTooMuch && group.length > 0) return group;
      group.push(next);
      this.#queue.shift();
    }
  }

  /** Sends until every entry is durable or its caller has given up. */
  async #sendGroup(items: AppendItem[]): Promise<void> {
    let left = items;
    for (let tries = 0; left.length > 0; tries++) {
      if (tries > 0) await pause(Math.min(1_000, 50 * 2 ** Math.min(tries, 5)));
      left = left.filter(({ append }) => !append.settled);
      // A single append may be too large for one request; its partitions are then sent one after the other.
      for (const part of splitIntoRequests(left)) left = without(left, await this.#trySend(part));
    }
  }

  /** Makes one attempt to send the entries; returns those that became durable. */
  async #trySend(items: readonly AppendItem[]): Promise<ReadonlySet<AppendItem>> {
    const durable = new Set<AppendItem>();
    try {
      const producer = await this.#connected();
      const messages = items.map(({ entry }) => toMessage(entry, this.#options.partition_count));
      const answers = await producer.sendBatch({
        acks: -1,
        timeout: this.request_timeout_ms,
        topicMessages: [{ topic: this.#options.topic, messages }],
      });
      const next = new Map(answers.filter(isAcknowledged).map((answer) => [answer.partition, firstOffset(answer)]));
      for (const item of items) {
        const offset = next.get(item.entry.partition);
        if (offset === undefined) continue;
        durable.add(item);
        item.append.offsets[item.index] = offset;
        next.set(item.entry.partition, offset + 1n);
      }
      this.#failures = 0;
    } catch (error) {
      if (error instanceof FarthingError) this.#reject(items, error);
      // The entries are sent again until their callers give up; kafkajs has already logged the cause.
      else if (++this.#failures >= FAILURES_BEFORE_RENEWAL) this.#renew();
    }
    for (const { append } of durable) if (--append.missing === 0) append.settle();
    return durable;
  }

  #connected(): Promise<Producer> {
    return (this.#producer ??= this.#connect().catch((error: unknown) => {
      this.#producer = null;
      throw error;
    }));
  }

  async #connect(): Promise<Producer> {
    const { client, partition_count } = this.#options;
    const producer = client(this.request_timeout_ms).producer({
      idempotent: false,
      allowAutoTopicCreation: false,
      metadataMaxAge: COUNT_SEEN_WITHIN_MS,
      createPartitioner: () => (choice) => {
        const { length } = choice.partitionMetadata;
        if (length !== partition_count) throw toPartitionCountFailure(partition_count, length);
        return choice.message.partition!;
      },
      retry: { retries: 0, initialRetryTime: 50, maxRetryTime: 500 },
    });
    try {
      await producer.connect();
    } catch (error) {
      await producer.disconnect().catch(() => {});
      throw error;
    }
    return producer;
  }

  #renew(): void {
    const old = this.#producer;
    this.#producer = null;
    this.#failures = 0;
    old?.then((producer) => producer.disconnect()).catch(() => {});
  }

  /** Rejects entries that were not sent and never will be. */
  #reject(items: readonly AppendItem[], error: FarthingError): void {
    for (const { append } of items) append.settle(error);
    this.#options.otherCountSeen();
  }

  get request_timeout_ms(): number {
    return Math.max(1_000, this.#options.append_timeout_ms);
  }
}

function isAcknowledged({ errorCode }: RecordMetadata): boolean {
  return errorCode === 0;
}

/** First offset of the messages of one partition in a request; they are consecutive in the log, in the order of sending. */
function firstOffset({ baseOffset, offset }: RecordMetadata): bigint {
  return BigInt(baseOffset ?? offset!);
}

function splitIntoRequests(items: readonly AppendItem[]): AppendItem[][] {
  const bytes = items.reduce((total, { entry }) => total + entry.body.length, 0);
  if (bytes <= GROUP_BYTES_MAX) return items.length > 0 ? [[...items]] : [];
  const byPartition = new Map<number, AppendItem[][]>();
  for (const item of items) {
    const parts = byPartition.get(item.entry.partition) ?? [[]];
    byPartition.set(item.entry.partition, parts);
    const last = parts.at(-1)!;
    const held = last.reduce((total, { entry }) => total + entry.body.length, 0);
    if (last.length > 0 && held + item.entry.body.length > MESSAGE_BYTES_MAX) parts.push([item]);
    else last.push(item);
  }
  return [...byPartition.values()].flat();
}

function without(items: readonly AppendItem[], gone: ReadonlySet<AppendItem>): AppendItem[] {
  return gone.size === 0 ? [...items] : items.filter((item) => !gone.has(item));
}

/** Builds one message per entry: the value is the received bytes, and the headers contain the other fields. */
function toMessage(entry: LogEntry, partition_count: number): Message {
  const headers: IHeaders = {
    kind: entry.kind,
    tenant_id: entry.tenant_id,
    environment_id: entry.environment_id,
    received_at_us: String(entry.received_at_us),
    event_count: String(entry.event_count),
    partitions: String(partition_count),
  };
  if (entry.generated_ids !== null) headers.made_ids = JSON.stringify(entry.generated_ids);
  if (entry.traceparent !== undefined) headers.traceparent = entry.traceparent;
  return { partition: entry.partition, key: null, value: entry.body, headers };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
