/**
 * The embedded event log: a table in Postgres with one row per batch. The bytes are in the row, or in files if the log has a directory
 * (docs/decisions/0005-embedded-stores.md). Appends become durable in groups: while one group is being written, the next one gathers. The
 * row lock of a partition makes offsets visible in the order of their assignment, so a reader never sees a gap.
 */
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import { unavailable } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Microseconds } from '../../../core/foundation/time/instant.ts';
import { runAsSystem } from '../../foundation/request-context.ts';
import { PREPARED } from '../../postgres/interceptors/bundled-statements.ts';
import type { EventLog, LogConsumer, LogEntry, LogRecord, PartitionHandler, PartitionLag } from '../log.ts';
import { loadLogRecords, loadRecordRows, RECORD_COLUMNS } from '../stored-records.ts';
import { EmbeddedAppender } from './appender.ts';
import { EmbeddedConsumer } from './consumer.ts';
import { openSegmentFiles, type SegmentFiles } from './segment-files.ts';

export type EmbeddedLogOptions = {
  partition_count: number;
  append_timeout_ms: number;
  /** Directory of the records' bytes; absent: Postgres stores them. Every process that opens the log must have access to it. */
  directory?: string;
  /** A new file is begun above this size. */
  segment_bytes_max?: number;
  /** A group up to this size remains in Postgres. */
  inline_bytes_max?: number;
  /** True if no other process uses the database: leases of earlier processes are then released at once. */
  sole_owner?: boolean;
  lease_ms?: number;
  /** Time after which a consumer whose event loop is unresponsive loses its leases. */
  alive_ms?: number;
  batch_events_max?: number;
  /** Maximum size of waiting appends; further appends are rejected at once. */
  queued_bytes_max?: number;
  /** Time for which records are gathered after a small batch. */
  linger_ms?: number;
};

/** A sole owner appends every record itself, which wakes its consumers, so they need not poll often. */
const SOLE_OWNER_IDLE_MS = 2_000;
const QUEUED_BYTES_MAX = 256 * 1024 * 1024;
const GROUP_BYTES_MAX = 16 * 1024 * 1024;

type RecordsQuery = Scope & { partition: number; from: bigint; containing: Buffer; limit: number };

type QueuedAppend = {
  entries: readonly LogEntry[];
  bytes: number;
  resolve(offsets: readonly bigint[]): void;
  reject(error: unknown): void;
  done: boolean;
};

/** Opens the log and creates its partitions on first use. The number of partitions is fixed at creation. */
export async function openEmbeddedLog(postgres: Knex, options: EmbeddedLogOptions): Promise<EmbeddedLog> {
  await postgres.raw(
    `insert into log_partitions (partition) select generate_series(0, ? - 1)
     where not exists (select 1 from log_partitions) on conflict do nothing`,
    [options.partition_count],
  );
  if (options.sole_owner) {
    await postgres.raw(`update log_partitions set owner = null, lease_until = null`);
    await postgres.raw(`delete from log_consumers`);
  }
  const { directory, ...rest } = options;
  const segments = directory === undefined ? null : await openSegmentFiles(postgres, { directory, ...rest });
  const made = await postgres.raw(`select count(*)::int as partitions from log_partitions`);
  return new EmbeddedLog(postgres, segments, { ...options, partition_count: made.rows[0].partitions });
}

export class EmbeddedLog implements EventLog {
  readonly partition_count: number;
  readonly #postgres: Knex;
  readonly #segments: SegmentFiles | null;
  readonly #appender: EmbeddedAppender;
  readonly #options: EmbeddedLogOptions;
  readonly #queue: QueuedAppend[] = [];
  #queuedBytes = 0;
  #flushing: Promise<void> | null = null;
  readonly #consumers = new Set<EmbeddedConsumer>();

  constructor(postgres: Knex, segments: SegmentFiles | null, options: EmbeddedLogOptions) {
    this.#postgres = postgres;
    this.#segments = segments;
    this.#appender = new EmbeddedAppender(postgres, segments, options);
    this.#options = options;
    this.partition_count = options.partition_count;
  }

  append(entries: readonly LogEntry[]): Promise<readonly bigint[]> {
    if (entries.length === 0) return Promise.resolve([]);
    const bytes = entries.reduce((total, entry) => total + entry.body.length, 0);
    if (this.#queuedBytes + bytes > (this.#options.queued_bytes_max ?? QUEUED_BYTES_MAX))
      return Promise.reject(unavailable('the event log (its queue is full)'));
    return new Promise((resolve, reject) => {
      const waiting: QueuedAppend = { entries, bytes, resolve, reject, done: false };
      this.#queue.push(waiting);
      this.#queuedBytes += bytes;
      this.#giveUpLater(waiting);
      // The flush runs as the system, because it also writes the appends of other callers and wakes the pipeline.
      this.#flushing ??= runAsSystem(() => this.#flush());
    });
  }

  async consume(handler: PartitionHandler): Promise<LogConsumer> {
    const consumer = new EmbeddedConsumer({ postgres: this.#postgres, segments: this.#segments }, handler, {
      id: `${process.pid}-${randomUUID()}`,
      lease_ms: this.#options.lease_ms ?? 10_000,
      ...(this.#options.alive_ms === undefined ? {} : { alive_ms: this.#options.alive_ms }),
      partition_count: this.partition_count,
      batch_events_max: this.#options.batch_events_max ?? 50_000,
      linger_ms: this.#options.linger_ms ?? 250,
      ...(this.#options.sole_owner ? { idle_ms: SOLE_OWNER_IDLE_MS } : {}),
    });
    this.#consumers.add(consumer);
    await consumer.start();
    return {
      stop: async () => {
        this.#consumers.delete(consumer);
        await consumer.stop();
      },
    };
  }

  async lag(): Promise<PartitionLag[]> {
    const loadRows = async () =>
      this.#postgres
        .raw(
          `select p.partition, p.next_offset as end_offset, p.committed_offset,
              (select r.received_at_us from log_records r
                where r.partition = p.partition and r."offset" >= p.committed_offset order by r."offset" limit 1) as oldest
         from log_partitions p order by p.partition`,
        )
        .options(PREPARED);
    const { rows } = await runAsSystem(loadRows);
    return rows.map((row: Record<string, string>) => ({
      partition: Number(row.partition),
      end_offset: BigInt(row.end_offset!),
      committed_offset: BigInt(row.committed_offset!),
      unprocessed_records: Number(BigInt(row.end_offset!) - BigInt(row.committed_offset!)),
      oldest_unprocessed_at_us: row.oldest === null ? null : Number(row.oldest),
    }));
  }

  async oldestUnprocessed({ tenant_id, environment_id }: Scope): Promise<Microseconds | null> {
    const loadRow = async () =>
      this.#postgres.raw(
        `select min(r.received_at_us) as oldest
           from log_partitions p join log_records r on r.partition = p.partition and r."offset" >= p.committed_offset
          where r.tenant_id = ? and r.environment_id = ?`,
        [tenant_id, environment_id],
      );
    const { rows } = await runAsSystem(loadRow);
    return rows[0].oldest === null ? null : Number(rows[0].oldest);
  }

  /** Records of a scope that may contain the text, in order. Records with bytes in files or with generated ids are returned unchecked. */
  async records({ partition, from, limit, containing, ...scope }: RecordsQuery): Promise<LogRecord[]> {
    const text = `select ${RECORD_COLUMNS} from log_records
       where partition = $1 and "offset" >= $2 and kind = 'events' and tenant_id = $3 and environment_id = $4
         and (body is null or position($5::bytea in body) > 0 or made_ids is not null) order by "offset" limit $6`;
    const values = [partition, String(from), scope.tenant_id, scope.environment_id, containing, limit];
    return loadLogRecords(partition, await loadRecordRows(this.#postgres, { text, values }), this.#segments);
  }

  async ping(): Promise<void> {
    await this.#postgres.raw('select 1');
  }

  async close(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.stop()));
    await this.#flushing;
    await this.#segments?.close();
  }

  async #flush(): Promise<void> {
    try {
      while (this.#queue.length > 0) await this.#commitGroup(this.#takeGroup());
    } finally {
      this.#flushing = null;
    }
  }

  #takeGroup(): QueuedAppend[] {
    const group: QueuedAppend[] = [];
    let bytes = 0;
    while (this.#queue.length > 0 && (group.length === 0 || bytes + this.#queue[0]!.bytes <= GROUP_BYTES_MAX)) {
      const next = this.#queue.shift()!;
      bytes += next.bytes;
      group.push(next);
    }
    return group;
  }

  async #commitGroup(group: QueuedAppend[]): Promise<void> {
    try {
      const entries = group.flatMap((waiting) => waiting.entries);
      const records = await this.#appender.append(entries);
      let at = 0;
      for (const waiting of group) {
        const own = records.slice(at, (at += waiting.entries.length)).map(({ offset }) => offset);
        this.#resolve(waiting, () => waiting.resolve(own));
      }
      for (const consumer of this.#consumers) consumer.appended(records);
    } catch (error) {
      for (const waiting of group) this.#resolve(waiting, () => waiting.reject(unavailable('the event log', error)));
    }
  }

  #resolve(waiting: QueuedAppend, answer: () => void): void {
    this.#queuedBytes -= waiting.bytes;
    if (waiting.done) return;
    waiting.done = true;
    answer();
  }

  /** Rejects an append after the timeout: its caller gets 503, and it is removed from the queue if it is still there. */
  #giveUpLater(waiting: QueuedAppend): void {
    const timer = setTimeout(() => {
      if (waiting.done) return;
      waiting.done = true;
      const at = this.#queue.indexOf(waiting);
      if (at >= 0) {
        this.#queue.splice(at, 1);
        this.#queuedBytes -= waiting.bytes;
      }
      waiting.reject(unavailable('the event log'));
    }, this.#options.append_timeout_ms);
    const { resolve, reject } = waiting;
    waiting.resolve = (offsets) => {
      clearTimeout(timer);
      resolve(offsets);
    };
    waiting.reject = (error) => {
      clearTimeout(timer);
      reject(error);
    };
  }
}
