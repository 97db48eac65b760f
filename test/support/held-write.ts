/** Holds the processes that write to a table, so that a test can kill one of them within its write. */
import type { Knex } from 'knex';
import { until } from './until.ts';

export type WritePoint = {
  readonly table: string;
  readonly on: 'insert' | 'update' | 'delete';
  /** Condition on `old` and `new`, in SQL. */
  readonly when?: string;
};

export type HeldWrite = {
  /** Resolves when a process waits at the point. */
  readonly reached: () => Promise<unknown>;
  /** Ends the connections that wait at the point, and holds no further write. */
  readonly release: () => Promise<void>;
};

const LOCK = 79;

export async function holdWrite(postgres: Knex, { table, on, when = 'true' }: WritePoint): Promise<HeldWrite> {
  const holding = await postgres.transaction();
  await holding.raw('select pg_advisory_xact_lock(?)', [LOCK]);
  await postgres.raw(`
    create function wait_at_write() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock_shared(${LOCK}); return coalesce(new, old); end $$;
    create trigger wait_at_write before ${on} on ${table} for each row when (${when}) execute function wait_at_write()`);
  const listWaiting = () =>
    postgres('pg_locks')
      .where({ locktype: 'advisory', granted: false, objid: LOCK })
      .whereRaw('database = (select oid from pg_database where datname = current_database())');
  return {
    reached: () => until('a process waits at the write', async () => (await listWaiting()).length > 0, 60_000),
    release: async () => {
      // Otherwise the statement of a killed process would continue after the rollback and could commit.
      await listWaiting().select(postgres.raw('pg_terminate_backend(pid, 5000)'));
      await holding.rollback();
      await postgres.raw('drop function wait_at_write() cascade');
    },
  };
}
