/**
 * The event log: one narrow interface with two implementations, `embedded.ts` (a table in Postgres) and `kafka.ts`, and one set of contract
 * tests for both (ARCHITECTURE.md, "The log").
 *
 * A record contains a batch of events of one tenant and environment, as the received bytes; or a control message (a barrier), which is
 * appended to every partition. Order holds within a partition, and its offsets have no gaps: in Postgres because of the row lock, in Kafka
 * because only records take offsets in our topic (no transactions, no compaction). If an offset is missing, a record is lost, and the
 * partition halts (continuity.ts).
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import type { EventOutcome } from '../../core/metering/event/outcome.ts';

type LogRecordKind = 'events' | 'control';

/** Input of a producer. `body` is the JSON text of an array of events (or of one control message). */
export type LogEntry = Scope & {
  readonly partition: number;
  readonly kind: LogRecordKind;
  readonly received_at_us: Microseconds;
  /** Generated ids of events that came without one, by index in the array. */
  readonly generated_ids: Readonly<Record<number, string>> | null;
  readonly event_count: number;
  readonly body: Buffer;
  /** W3C trace context of the request, if it is traced (storage/log/traced-log.ts). */
  readonly traceparent?: string;
};

export type LogRecord = LogEntry & { readonly offset: bigint };

/** Input that could not become an event: the received bytes, the reason, and the position in the log. */
export type LogDeadLetter = Pick<
  EventOutcome,
  | 'tenant_id'
  | 'environment_id'
  | 'event_id'
  | 'reason'
  | 'received_at_us'
  | 'partition'
  | 'offset'
  | 'position'
  | 'body'
>;

/** System event as published to a topic. */
export type PublishedSystemEvent = Scope & {
  readonly id: string;
  readonly event_name: string;
  readonly entity_type: string;
  readonly entity_id: string;
  readonly user_id: string;
  readonly timestamp: string;
  readonly payload: Record<string, unknown>;
};

/** Lag of one partition: the appended and the committed offset. */
export type PartitionLag = {
  readonly partition: number;
  readonly end_offset: bigint;
  readonly committed_offset: bigint;
  readonly unprocessed_records: number;
  readonly oldest_unprocessed_at_us: Microseconds | null;
};

export interface EventLog {
  readonly partition_count: number;

  /**
   * Resolves when every entry is durable, with their offsets in the order of the entries; rejects with `service_unavailable` after the
   * configured timeout. After a rejection some entries may be durable; event identity removes the duplicates of a repeated send.
   */
  append(entries: readonly LogEntry[]): Promise<readonly bigint[]>;

  /** Starts a consumer; the handler is called when partitions are assigned to it or revoked. */
  consume(handler: PartitionHandler): Promise<LogConsumer>;

  /**
   * Publishes to external consumers, at least once; resolves when that is durable. The embedded log has no external consumers: its dead
   * letters are only rows in the stores.
   */
  publishDeadLetters?(letters: readonly LogDeadLetter[]): Promise<void>;

  /** Publishes system events to a topic of their own, at least once; the events of one record stay in order. */
  publishSystemEvents?(events: readonly PublishedSystemEvent[]): Promise<void>;

  lag(): Promise<PartitionLag[]>;
  /**
   * Receipt of the oldest record of the environment that is not in the stores yet; null if there is none. Kafka lacks it: a topic does not
   * know the environments of its records.
   */
  oldestUnprocessed?(scope: Scope): Promise<Microseconds | null>;
  /** Resolves when the log answers; rejects when it does not. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** Callbacks of a consumer. The log never calls them twice at once for one partition. */
export interface PartitionHandler {
  /**
   * Called when this process gets the partition. Returns the offset of the stores, which takes precedence over the
   * committed one.
   */
  assigned(partition: number): Promise<StoredPosition>;
  /** Called with the next records, without a gap: the first is at the returned `read_from` of the previous call, or at `next_offset`. */
  process(batch: PartitionBatch): Promise<ConsumerProgress>;
  /** Called when another consumer gets the partition; the handler drops its state. */
  revoked(partition: number): Promise<void>;
  /** Called after a batch failed: the handler drops its state, and `assigned` is called again. */
  failed?(partition: number, error: unknown): void;
  /** Called after a failure outside of a batch; no work is repeated for it. */
  failedInBackground?(partition: number, error: unknown): void;
  /** Called when the stores contain everything in the log. */
  caughtUp?(partition: number): void;
}

/** Position of the stores in a partition. */
export type StoredPosition = {
  /** Everything before this offset is in the stores. */
  readonly next_offset: bigint;
  /** Checksum (`recordCrc`) of the record before `next_offset`, which distinguishes this log from another; null if unknown. */
  readonly last_record: number | null;
  /** Minimum end of the log: the end of the slice that a crash left. The log cannot end before it. */
  readonly min_end_offset: bigint;
};

/** A handler may read records before it stores them; only stored records may be committed or removed from the log. */
export type ConsumerProgress = {
  /** Everything before this offset is in the stores. */
  readonly stored_until: bigint;
  /**
   * The next record that the handler needs. The handler has the records between the two offsets in memory; they are read again after a
   * failure.
   */
  readonly read_from: bigint;
};

export type PartitionBatch = {
  readonly partition: number;
  readonly records: readonly LogRecord[];
  /** Whether the partition still belongs to this process, as far as known; the write fence of the stores is authoritative. */
  isOwner(): boolean;
  /** Reports to the log that the process is alive during long work. */
  heartbeat(): Promise<void>;
};

export interface LogConsumer {
  /** Finishes the current batch, commits, and releases the partitions. */
  stop(): Promise<void>;
}
