/**
 * A consumer of the embedded log: holds leases on a fair share of the partitions, reads each in order, hands the records
 * to its handler and commits after it. A lease that runs out (its holder died or was frozen) is taken by another.
 */
import type { Knex } from 'knex';
import type { LogRecord, PartitionHandler } from './log.ts';
import { RecentRecords } from './recent-records.ts';
import type { SegmentFiles } from './segment-files.ts';
import { RECORD_COLUMNS, recordsOf, rowsOf } from './stored-records.ts';

type Kept = { postgres: Knex; segments: SegmentFiles | null };
type Options = { id: string; lease_ms: number; batch_events_max: number; linger_ms: number };
type Held = {
  partition: number;
  next_offset: bigint;
  lease_until: number;
  lost: boolean;
  loop: Promise<void>;
  recent: RecentRecords;
};

const IDLE_WAIT_MS = 250;
const READ_ROWS_MAX = 2_000;
const READ_BYTES_MAX = 64 * 1024 * 1024;
/** Records behind the committed offset that stay for a look back; the archive is the raw events in ClickHouse. */
const KEPT_RECORDS = 1_000;

/** The rows of one owner, taken in the order in which appends take theirs: in another, each could wait for the other. */
const OURS = `with ours as (select partition from log_partitions where owner = ? order by partition for update)`;

export class EmbeddedConsumer {
  readonly #postgres: Knex;
  readonly #segments: SegmentFiles | null;
  readonly #handler: PartitionHandler;
  readonly #options: Options;
  readonly #held = new Map<number, Held>();
  readonly #sleepers = new Set<() => void>();
  #stopping = false;
  #keeper: Promise<void> | null = null;

  constructor({ postgres, segments }: Kept, handler: PartitionHandler, options: Options) {
    this.#postgres = postgres;
    this.#segments = segments;
    this.#handler = handler;
    this.#options = options;
  }

  async start(): Promise<void> {
    await this.#shareOut();
    this.#keeper = this.#keepLeases();
  }

  /** These were just made durable by our own process: whoever waits for them goes on, and need not read them back. */
  appended(records: readonly LogRecord[]): void {
    for (const record of records) this.#held.get(record.partition)?.recent.add(record);
    this.wake();
  }

  wake(): void {
    for (const sleeper of [...this.#sleepers]) sleeper();
  }

  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    this.wake();
    await this.#keeper;
    await Promise.all([...this.#held.values()].map((held) => held.loop));
    await this.#postgres.raw(
      `${OURS} update log_partitions p set owner = null, lease_until = null from ours where p.partition = ours.partition`,
      [this.#options.id],
    );
    await this.#postgres.raw(`delete from log_consumers where id = ?`, [this.#options.id]);
  }

  async #keepLeases(): Promise<void> {
    while (!this.#stopping) {
      await this.#sleep(this.#options.lease_ms / 3);
      if (this.#stopping) return;
      try {
        await this.#shareOut();
      } catch {
        // Postgres is away: leases run out by themselves, and the next round tries again.
      }
    }
  }

  /** One round: say that we live, renew what is ours, give back above the fair share, take what is free below it. */
  async #shareOut(): Promise<void> {
    const { id, lease_ms } = this.#options;
    const asked = performance.now();
    const lease = `now() + interval '${lease_ms} milliseconds'`;
    await this.#postgres.raw(
      `insert into log_consumers (id, seen_until) values (?, ${lease}) on conflict (id) do update set seen_until = excluded.seen_until`,
      [id],
    );
    await this.#postgres.raw(`delete from log_consumers where seen_until < now() - interval '1 minute'`);
    const renewed = await this.#postgres.raw(
      `${OURS} update log_partitions p set lease_until = ${lease} from ours
        where p.partition = ours.partition and lease_until > now() returning p.partition`,
      [id],
    );
    const ours = new Set<number>(renewed.rows.map((row: { partition: number }) => row.partition));
    for (const held of this.#held.values()) {
      if (ours.has(held.partition)) held.lease_until = asked + lease_ms;
      else this.#lose(held);
    }
    const share = await this.#fairShare();
    for (const held of [...this.#held.values()].slice(share)) await this.#giveBack(held);
    await this.#takeFree(share - this.#held.size);
  }

  async #fairShare(): Promise<number> {
    const { rows } = await this.#postgres.raw(
      `select (select count(*) from log_partitions)::int as partitions,
              (select count(*) from log_consumers where seen_until > now())::int as consumers`,
    );
    return Math.ceil(rows[0].partitions / Math.max(1, rows[0].consumers));
  }

  async #takeFree(most: number): Promise<void> {
    if (most <= 0) return;
    const asked = performance.now();
    const taken = await this.#postgres.raw(
      `update log_partitions set owner = ?, lease_until = now() + interval '${this.#options.lease_ms} milliseconds'
        where partition in (select partition from log_partitions where owner is null or lease_until < now()
                             order by partition limit ? for update skip locked)
       returning partition`,
      [this.#options.id, most],
    );
    for (const { partition } of taken.rows as { partition: number }[]) {
      const held: Held = {
        partition,
        next_offset: 0n,
        lease_until: asked + this.#options.lease_ms,
        lost: false,
        loop: Promise.resolve(),
        recent: new RecentRecords(),
      };
      this.#held.set(partition, held);
      held.loop = this.#run(held);
    }
  }

  #lose(held: Held): void {
    held.lost = true;
    this.#held.delete(held.partition);
    this.wake();
  }

  async #giveBack(held: Held): Promise<void> {
    this.#lose(held);
    await held.loop;
    await this.#postgres.raw(
      `update log_partitions set owner = null, lease_until = null where partition = ? and owner = ?`,
      [held.partition, this.#options.id],
    );
  }

  #owns(held: Held): boolean {
    return !held.lost && performance.now() < held.lease_until;
  }

  /** The life of one partition with us: assigned, batches, revoked. A failed batch is tried again from the same offset. */
  async #run(held: Held): Promise<void> {
    let assigned = false;
    let failures = 0;
    while (!this.#stopping && !held.lost) {
      try {
        if (!assigned) {
          held.next_offset = await this.#handler.assigned(held.partition);
          assigned = true;
        }
        const began = performance.now();
        const records = await this.#read(held);
        if (records.length === 0) await this.#sleep(IDLE_WAIT_MS);
        else await this.#handOver(held, records);
        failures = 0;
        await this.#linger(records, began);
      } catch (error) {
        assigned = false;
        failures++;
        this.#handler.failed?.(held.partition, error);
        await this.#sleep(Math.min(5_000, 100 * 2 ** Math.min(failures, 6)));
      }
    }
    await this.#handler.revoked(held.partition);
  }

  /** Small batches cost as much as large ones: a trickle is gathered for a moment, a full batch is followed at once. */
  async #linger(records: readonly LogRecord[], began: number): Promise<void> {
    const events = records.reduce((total, record) => total + record.event_count, 0);
    const rest = this.#options.linger_ms - (performance.now() - began);
    if (records.length > 0 && events < this.#options.batch_events_max / 2 && rest > 0 && !this.#stopping) {
      await new Promise((resolve) => setTimeout(resolve, rest));
    }
  }

  async #handOver(held: Held, records: LogRecord[]): Promise<void> {
    const next = await this.#handler.process({
      partition: held.partition,
      records,
      isOwner: () => this.#owns(held),
      heartbeat: async () => {},
    });
    held.next_offset = next;
    await this.#commit(held.partition, next);
  }

  async #commit(partition: number, next: bigint): Promise<void> {
    await this.#postgres.raw(
      `update log_partitions set committed_offset = ? where partition = ? and committed_offset < ?`,
      [String(next), partition, String(next)],
    );
    await this.#postgres.raw(`delete from log_records where partition = ? and "offset" < ?`, [
      partition,
      String(next - BigInt(KEPT_RECORDS)),
    ]);
    // What was handed over is committed: a file that cannot be removed is told, and is no reason to do it again.
    await this.#segments?.removeSometimes().catch((error) => this.#handler.failed?.(partition, error));
  }

  /** The next records, as many as hold about a slice of events. */
  async #read(held: Held): Promise<LogRecord[]> {
    const recent = held.recent.take(held.next_offset, this.#options.batch_events_max);
    if (recent.length > 0) return recent;
    const text = `select ${RECORD_COLUMNS}
                 from (select *, sum(event_count) over (order by "offset") - event_count as before,
                              sum(bytes) over (order by "offset") - bytes as bytes_before
                         from (select *, coalesce(length, octet_length(body)) as bytes from log_records
                                where partition = $1 and "offset" >= $2
                                order by "offset" limit ${READ_ROWS_MAX}) as next_records) as counted
                where before < $3 and bytes_before < ${READ_BYTES_MAX} order by "offset"`;
    const values = [held.partition, String(held.next_offset), this.#options.batch_events_max];
    return recordsOf(held.partition, await rowsOf(this.#postgres, { text, values }), this.#segments);
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
