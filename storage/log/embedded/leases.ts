/**
 * Ownership of the partitions of the embedded log. A partition is leased in its row of `log_partitions`. An expired lease (its holder died
 * or was frozen) is taken by another consumer.
 *
 * A separate thread with its own connection renews the leases (lease-renewals.ts), so that work that blocks the event loop does not cost
 * the partition. Shared memory contains the end of each lease and decides ownership, so a late timer cannot affect it. The thread renews
 * while the main loop has updated its heartbeat within `alive_ms`: a loop that never recovers loses its partitions. If the process is
 * suspended, both stop, and its leases have expired when it resumes.
 */
import type { Knex } from 'knex';
import { IN_NO_ANSWER } from '../../postgres/interceptors/own-writes.ts';
import { readUrl } from '../../postgres/pool/postgres.ts';
import { continueRenewing, type Holder, startRenewing, stopRenewing } from './lease-renewals.ts';

type LeaseOptions = {
  readonly id: string;
  readonly lease_ms: number;
  readonly partition_count: number;
  /** Time without a heartbeat after which the leases are not renewed; longer than the longest uninterrupted work. */
  readonly alive_ms?: number;
};

const ALIVE_MS = 60_000;
const BEAT_MS = 1_000;

/** Layout of the shared memory, in nanoseconds of the monotonic clock: the last heartbeat, then the end of each lease. */
const BEAT = 0;
const toLeaseKey = (partition: number) => partition + 1;

export class EmbeddedLeases {
  readonly #postgres: Knex;
  readonly #options: LeaseOptions;
  readonly #shared: BigInt64Array;
  readonly #holder: Holder;
  #beating: NodeJS.Timeout | null = null;

  constructor(postgres: Knex, options: LeaseOptions) {
    this.#postgres = postgres;
    this.#options = options;
    this.#shared = new BigInt64Array(new SharedArrayBuffer(8 * toLeaseKey(options.partition_count)));
    const { id, lease_ms, alive_ms = ALIVE_MS } = options;
    this.#holder = { url: readUrl(postgres), id, lease_ms, alive_ms, shared: this.#shared };
  }

  /** Resolves after the first renewal. From then on other consumers count this one. */
  async start(): Promise<void> {
    this.#beat();
    this.#beating ??= setInterval(() => this.#beat(), BEAT_MS).unref();
    await startRenewing(this.#holder);
  }

  holds(partition: number): boolean {
    return process.hrtime.bigint() < Atomics.load(this.#shared, toLeaseKey(partition));
  }

  /** Restarts the renewal if it has ended, and deletes consumers whose registration expired over a minute ago. */
  async tend(): Promise<void> {
    await continueRenewing(this.#holder);
    await this.#postgres.raw(
      `delete from log_consumers where seen_until < now() - interval '1 minute' ${IN_NO_ANSWER}`,
    );
  }

  async fairShare(): Promise<number> {
    const { rows } = await this.#postgres.raw(
      `select (select count(*) from log_partitions)::int as partitions,
              (select count(*) from log_consumers where seen_until > now())::int as consumers`,
    );
    return Math.ceil(rows[0].partitions / Math.max(1, rows[0].consumers));
  }

  /**
   * Leases up to `most` free partitions. Partitions that this consumer still owns in Postgres are included: its local lease may have
   * expired just before the thread renewed it.
   */
  async takeFree(most: number, except: readonly number[]): Promise<number[]> {
    if (most <= 0) return [];
    const { id, lease_ms, partition_count } = this.#options;
    const started_ns = process.hrtime.bigint();
    const { rows } = await this.#postgres.raw(
      `update log_partitions set owner = :id, lease_until = now() + :lease_ms * interval '1 millisecond'
        where partition in (select partition from log_partitions
                             where (owner is null or lease_until < now() or owner = :id)
                               and partition < :partition_count and partition <> all(cast(:except as int[]))
                             order by partition limit :most for update skip locked)
       returning partition`,
      { id, lease_ms, partition_count, except: [...except], most },
    );
    const taken: number[] = rows.map(({ partition }: { partition: number }) => partition).sort(byNumber);
    for (const partition of taken)
      Atomics.store(this.#shared, toLeaseKey(partition), started_ns + BigInt(lease_ms) * 1_000_000n);
    return taken;
  }

  async giveBack(partition: number): Promise<void> {
    await this.#postgres.raw(
      `update log_partitions set owner = null, lease_until = null where partition = ? and owner = ?`,
      [partition, this.#options.id],
    );
  }

  async stop(): Promise<void> {
    if (this.#beating) clearInterval(this.#beating);
    this.#beating = null;
    await stopRenewing(this.#holder);
    const { id } = this.#options;
    await this.#postgres.raw(
      // Rows are locked in the order of appends; another order could deadlock.
      `with ours as (select partition from log_partitions where owner = ? order by partition for update)
       update log_partitions p set owner = null, lease_until = null from ours where p.partition = ours.partition`,
      [id],
    );
    await this.#postgres.raw(`delete from log_consumers where id = ?`, [id]);
  }

  #beat(): void {
    Atomics.store(this.#shared, BEAT, process.hrtime.bigint());
  }
}

function byNumber(a: number, b: number): number {
  return a - b;
}
