/**
 * The event log: one narrow interface; `embedded.ts` (a table in Postgres) and `kafka.ts` behind it, one set of contract
 * tests for both (design: ARCHITECTURE.md, "The log").
 *
 * A record carries a batch of events of one tenant and environment, as the bytes that came in; or a control message
 * (a barrier), which is appended to every partition. Order holds within a partition; offsets grow, with gaps allowed.
 */
import type { Scope } from '../../core/scope.ts';
import type { EventOutcome } from '../events/tables.ts';

export type LogRecordKind = 'events' | 'control';

/** What a producer appends. `body` is the JSON text of an array of events (or of one control message). */
export type LogEntry = Scope & {
  readonly partition: number;
  readonly kind: LogRecordKind;
  readonly received_at_us: number;
  /** Ids made by us for events that came without one, by index in the array. */
  readonly made_ids: Readonly<Record<number, string>> | null;
  readonly event_count: number;
  readonly body: Buffer;
};

/** What a consumer reads back. */
export type LogRecord = LogEntry & { readonly offset: bigint };

/** What could not become an event: the bytes as they came, why, and where it stands in the log. */
export type DeadLetter = Pick<
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

/** One partition's distance: what was appended, and what was committed by the consumers. */
export type PartitionLag = {
  readonly partition: number;
  readonly end_offset: bigint;
  readonly committed_offset: bigint;
  readonly unprocessed_records: number;
  readonly oldest_unprocessed_at_us: number | null;
};

export interface EventLog {
  readonly partition_count: number;

  /** Resolves when every entry is durable; rejects with `service_unavailable` after the configured bound. All or, on a reject, perhaps some: a re-send is removed by event identity. */
  append(entries: readonly LogEntry[]): Promise<void>;

  /** Starts a consumer: partitions are assigned to it and taken away again through the handler. */
  consume(handler: PartitionHandler): Promise<LogConsumer>;

  /**
   * Tells whoever listens beside the log; resolves when that is durable. At least once, so one may be told again. The embedded
   * log has nobody to tell: there the rows in the stores are all.
   */
  tellDeadLetters?(letters: readonly DeadLetter[]): Promise<void>;

  lag(): Promise<PartitionLag[]>;
  /** Resolves when the log answers; rejects when it does not. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** Called by the log; a partition is never handled twice at once within a consumer. */
export interface PartitionHandler {
  /** The partition is ours from now on; answers the offset to start from (what the stores hold wins over what the log has committed). */
  assigned(partition: number): Promise<bigint>;
  /** Records in order. Resolves with the next offset when the stores have all before it; then the log commits it. */
  process(batch: PartitionBatch): Promise<bigint>;
  /** The partition belongs to somebody else now; drop what was held for it. */
  revoked(partition: number): Promise<void>;
  /** A batch failed and will be tried again: for logs and metrics. */
  failed?(partition: number, error: unknown): void;
}

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
