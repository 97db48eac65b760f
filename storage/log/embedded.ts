/**
 * The embedded event log: a table in Postgres, one row per batch. Appends are committed in groups: while one transaction
 * is on its way to the disk the next gathers what came meanwhile. The row lock on a partition makes offsets visible in
 * the order in which they were given, so a reader never meets a gap.
 */
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import { unavailable } from '../../core/error.ts';
import { EmbeddedConsumer } from './embedded-consumer.ts';
import type { EventLog, LogConsumer, LogEntry, LogRecord, PartitionHandler, PartitionLag } from './log.ts';

export type EmbeddedLogOptions = {
  partition_count: number;
  append_timeout_ms: number;
  /** We are alone on this database: what an earlier process leased is free at once. */
  sole_owner?: boolean;
  lease_ms?: number;
  batch_events_max?: number;
  /** Appends that wait hold so much at most; what comes then is refused at once. */
  queued_bytes_max?: number;
  /** A trickle of records is gathered this long before it is handed on. */
  linger_ms?: number;
};

const QUEUED_BYTES_MAX = 256 * 1024 * 1024;
const GROUP_BYTES_MAX = 16 * 1024 * 1024;

type Waiting = {
  entries: readonly LogEntry[];
  bytes: number;
  resolve(): void;
  reject(error: unknown): void;
  done: boolean;
};

/** Opens the log and makes its partitions on first use. The number of partitions is fixed when the log is made. */
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
  const made = await postgres.raw(`select count(*)::int as partitions from log_partitions`);
  return new EmbeddedLog(postgres, { ...options, partition_count: made.rows[0].partitions });
}

export class EmbeddedLog implements EventLog {
  readonly partition_count: number;
  readonly #postgres: Knex;
  readonly #options: EmbeddedLogOptions;
  readonly #queue: Waiting[] = [];
  #queuedBytes = 0;
  #flushing: Promise<void> | null = null;
  readonly #consumers = new Set<EmbeddedConsumer>();

  constructor(postgres: Knex, options: EmbeddedLogOptions) {
    this.#postgres = postgres;
    this.#options = options;
    this.partition_count = options.partition_count;
  }

  append(entries: readonly LogEntry[]): Promise<void> {
    if (entries.length === 0) return Promise.resolve();
    const bytes = entries.reduce((total, entry) => total + entry.body.length, 0);
    if (this.#queuedBytes + bytes > (this.#options.queued_bytes_max ?? QUEUED_BYTES_MAX))
      return Promise.reject(unavailable('the event log (its queue is full)'));
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { entries, bytes, resolve, reject, done: false };
      this.#queue.push(waiting);
      this.#queuedBytes += bytes;
      this.#giveUpLater(waiting);
      this.#flushing ??= this.#flush();
    });
  }

  async consume(handler: PartitionHandler): Promise<LogConsumer> {
    const consumer = new EmbeddedConsumer(this.#postgres, handler, {
      id: `${process.pid}-${randomUUID()}`,
      lease_ms: this.#options.lease_ms ?? 10_000,
      batch_events_max: this.#options.batch_events_max ?? 50_000,
      linger_ms: this.#options.linger_ms ?? 250,
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
    const { rows } = await this.#postgres.raw(
      `select p.partition, p.next_offset as end_offset, p.committed_offset,
              (select r.received_at_us from log_records r
                where r.partition = p.partition and r."offset" >= p.committed_offset order by r."offset" limit 1) as oldest
         from log_partitions p order by p.partition`,
    );
    return rows.map((row: Record<string, string>) => ({
      partition: Number(row.partition),
      end_offset: BigInt(row.end_offset!),
      committed_offset: BigInt(row.committed_offset!),
      unprocessed_records: Number(BigInt(row.end_offset!) - BigInt(row.committed_offset!)),
      oldest_unprocessed_at_us: row.oldest === null ? null : Number(row.oldest),
    }));
  }

  async ping(): Promise<void> {
    await this.#postgres.raw('select 1');
  }

  async close(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.stop()));
    await this.#flushing;
  }

  async #flush(): Promise<void> {
    try {
      while (this.#queue.length > 0) await this.#commitGroup(this.#takeGroup());
    } finally {
      this.#flushing = null;
    }
  }

  #takeGroup(): Waiting[] {
    const group: Waiting[] = [];
    let bytes = 0;
    while (this.#queue.length > 0 && (group.length === 0 || bytes + this.#queue[0]!.bytes <= GROUP_BYTES_MAX)) {
      const next = this.#queue.shift()!;
      bytes += next.bytes;
      group.push(next);
    }
    return group;
  }

  async #commitGroup(group: Waiting[]): Promise<void> {
    try {
      const entries = group.flatMap((waiting) => waiting.entries);
      const records = await insertRecords(this.#postgres, entries);
      for (const waiting of group) this.#settle(waiting, () => waiting.resolve());
      for (const consumer of this.#consumers) consumer.appended(records);
    } catch (error) {
      for (const waiting of group) this.#settle(waiting, () => waiting.reject(unavailable('the event log', error)));
    }
  }

  #settle(waiting: Waiting, answer: () => void): void {
    this.#queuedBytes -= waiting.bytes;
    if (waiting.done) return;
    waiting.done = true;
    answer();
  }

  /** After the bound the caller hears 503; what is not yet on its way is taken out of the queue. */
  #giveUpLater(waiting: Waiting): void {
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
    waiting.resolve = () => {
      clearTimeout(timer);
      resolve();
    };
    waiting.reject = (error) => {
      clearTimeout(timer);
      reject(error);
    };
  }
}

const COLUMNS_OF_ENTRY = 8;
const ROWS_PER_STATEMENT = 4_000;

/**
 * The offsets are taken under the row locks of their partitions, in the order of the partitions: all entries or none. One
 * statement is a transaction by itself; only a group that is too long for one needs another around it.
 */
async function insertRecords(postgres: Knex, entries: readonly LogEntry[]): Promise<LogRecord[]> {
  const connection = (await postgres.client.acquireConnection()) as PgConnection;
  try {
    if (entries.length <= ROWS_PER_STATEMENT) return await insertSome(connection, entries);
    return await insertMany(connection, entries);
  } finally {
    await postgres.client.releaseConnection(connection);
  }
}

async function insertMany(connection: PgConnection, entries: readonly LogEntry[]): Promise<LogRecord[]> {
  const records: LogRecord[] = [];
  await connection.query({ text: 'begin' });
  try {
    for (let from = 0; from < entries.length; from += ROWS_PER_STATEMENT) {
      records.push(...(await insertSome(connection, entries.slice(from, from + ROWS_PER_STATEMENT))));
    }
    await connection.query({ text: 'commit' });
    return records;
  } catch (error) {
    await connection.query({ text: 'rollback' });
    throw error;
  }
}

async function insertSome(connection: PgConnection, entries: readonly LogEntry[]): Promise<LogRecord[]> {
  const counts = new Map<number, number>();
  const values: unknown[] = [];
  const ordinals: number[] = [];
  const rows = entries.map((entry, index) => {
    const ordinal = counts.get(entry.partition) ?? 0;
    ordinals.push(ordinal);
    counts.set(entry.partition, ordinal + 1);
    values.push(
      entry.kind,
      entry.tenant_id,
      entry.environment_id,
      entry.received_at_us,
      entry.made_ids === null ? null : JSON.stringify(entry.made_ids),
      entry.event_count,
      entry.body,
      entry.partition,
    );
    const first = index * COLUMNS_OF_ENTRY;
    const bind = (column: number, type: string) => `$${first + column}::${type}`;
    return `(${bind(8, 'int')},${ordinal},${bind(1, 'text')},${bind(2, 'text')},${bind(3, 'text')},${bind(4, 'bigint')},${bind(5, 'text')},${bind(6, 'int')},${bind(7, 'bytea')})`;
  });
  const wanted = [...counts].map(([partition, count]) => `(${partition},${count})`).join(',');
  const sql = `
    with wanted (partition, amount) as (values ${wanted}),
    locked as (select p.partition from log_partitions p join wanted using (partition) order by p.partition for update of p),
    slots as (update log_partitions p set next_offset = p.next_offset + w.amount from wanted w, locked l
               where p.partition = w.partition and l.partition = w.partition
           returning p.partition, p.next_offset - w.amount as first),
    written as (insert into log_records (partition, "offset", kind, tenant_id, environment_id, received_at_us, made_ids, event_count, body)
      select e.partition, s.first + e.ordinal, e.kind, e.tenant_id, e.environment_id, e.received_at_us, e.made_ids, e.event_count, e.body
        from (values ${rows.join(',')}) as e (partition, ordinal, kind, tenant_id, environment_id, received_at_us, made_ids, event_count, body)
        join slots s using (partition) returning partition)
    select partition, first, (select count(*) from written)::int from slots`;
  const answer = await connection.query({ text: sql, values, rowMode: 'array' });
  if (answer.rows[0]?.[2] !== entries.length) throw new Error('the event log has no such partition');
  const firsts = new Map(
    (answer.rows as [number, string, number][]).map(([partition, first]) => [partition, BigInt(first)]),
  );
  return entries.map((entry, index) => ({ ...entry, offset: firsts.get(entry.partition)! + BigInt(ordinals[index]!) }));
}

/** The driver below knex: its `?` bindings would copy the batches once more. */
export type PgConnection = {
  query(question: {
    text: string;
    values?: unknown[];
    rowMode?: 'array';
  }): Promise<{ rows: unknown[][]; rowCount: number | null }>;
};
