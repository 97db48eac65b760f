/**
 * The event log: one narrow interface; `embedded.ts` (a table in Postgres) and `kafka.ts` behind it, one set of contract
 * tests for both (ARCHITECTURE.md, "The log").
 *
 * A record carries a batch of events of one tenant and environment, as the bytes that came in; or a control message (a
 * barrier), which is appended to every partition. Order holds within a partition, and its offsets are without a gap: in
 * Postgres by the lock of a row, in Kafka because nothing in our topic takes an offset but a record (no transactions, no
 * compaction). Where one is missing all the same, a record is lost, and the partition stops (continuity.ts).
 */
import type { Scope } from '../../core/scope.ts';
import type { Microseconds } from '../../core/time/instant.ts';
import type { EventOutcome } from '../events/tables.ts';

export type LogRecordKind = 'events' | 'control';

/** What a producer appends. `body` is the JSON text of an array of events (or of one control message). */
export type LogEntry = Scope & {
  readonly partition: number;
  readonly kind: LogRecordKind;
  readonly received_at_us: Microseconds;
  /** Ids made by us for events that came without one, by index in the array. */
  readonly made_ids: Readonly<Record<number, string>> | null;
  readonly event_count: number;
  readonly body: Buffer;
  /** Where the request stands in its trace, if it is traced (storage/log/traced-log.ts). */
  readonly traceparent?: string;
};

/** What a consumer reads back. */
export type LogRecord = LogEntry & { readonly offset: bigint };

/** What could not become an event: the bytes as they came, why, and where it stands in the log. */
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

/** A system event as it is told beside the log. */
export type PublishedSystemEvent = Scope & {
  readonly id: string;
  readonly event_name: string;
  readonly entity_type: string;
  readonly entity_id: string;
  readonly user_id: string;
  readonly timestamp: string;
  readonly payload: Record<string, unknown>;
};

/** One partition's distance: what was appended, and what was committed by the consumers. */
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
   * configured bound. All or, on a reject, perhaps some: a re-send is removed by event identity.
   */
  append(entries: readonly LogEntry[]): Promise<readonly bigint[]>;

  /** Starts a consumer: partitions are assigned to it and taken away again through the handler. */
  consume(handler: PartitionHandler): Promise<LogConsumer>;

  /**
   * Tells whoever listens beside the log; resolves when that is durable. At least once, so one may be told again. The embedded
   * log has nobody to tell: there the rows in the stores are all.
   */
  publishDeadLetters?(letters: readonly LogDeadLetter[]): Promise<void>;

  /** The same for system events, which have a topic of their own: those of one record stay in order. */
  publishSystemEvents?(events: readonly PublishedSystemEvent[]): Promise<void>;

  lag(): Promise<PartitionLag[]>;
  /** Resolves when the log answers; rejects when it does not. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** Called by the log; a partition is never handled twice at once within a consumer. */
export interface PartitionHandler {
  /** The partition is ours from now on; answers where the stores are, which wins over what the log has committed. */
  assigned(partition: number): Promise<StoredPlace>;
  /** Records in order and without a gap: the first is the one at `read_from` of the answer before, or at `next_offset`. */
  process(batch: PartitionBatch): Promise<ConsumerProgress>;
  /** The partition belongs to somebody else now; drop what was held for it. */
  revoked(partition: number): Promise<void>;
  /** A batch failed: what was held is dropped, and `assigned` is asked again. */
  failed?(partition: number, error: unknown): void;
  /** Something beside the batch failed: nothing is done again for it. */
  noticed?(partition: number, error: unknown): void;
  /** Nothing is in the log that is not in the stores. */
  caughtUp?(partition: number): void;
}

/** Where the stores are in a partition. */
export type StoredPlace = {
  /** Everything before it is in the stores. */
  readonly next_offset: bigint;
  /** `recordCrc` of the record before it, by which this log is told from another; null where that is not known. */
  readonly last_record: number | null;
  /** So far the log has been read at least, by the end of the slice that a crash left: it cannot end before. */
  readonly seen_until: bigint;
};

/** Two different things: what is read is not yet stored, and only what is stored may be committed, or leave the log. */
export type ConsumerProgress = {
  /** Everything before it is in the stores. */
  readonly stored_until: bigint;
  /** The next record that the handler wants. What stands between the two is held by it, and is read again after a failure. */
  readonly read_from: bigint;
};

export type PartitionBatch = {
  readonly partition: number;
  readonly records: readonly LogRecord[];
  /** Whether the partition is still ours as far as we can know: the stores' fence decides in the end. */
  isOwner(): boolean;
  /** Tells the log that we are alive during long work. */
  heartbeat(): Promise<void>;
};

export interface LogConsumer {
  /** Finishes the batch in hand, commits, gives the partitions back. */
  stop(): Promise<void>;
}
