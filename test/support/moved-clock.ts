/** Moves the clock of a test's database: its search path finds functions in the schema `moved` before the built-in ones. */
import type { Knex } from 'knex';

type ClockFunction = 'clock_timestamp' | 'now';

/**
 * Must be called before the test does anything else, because it ends all other connections. Returns a function that sets
 * the clock. To move the clock of the job queue, too, `functions` must contain `now`.
 */
export async function moveDatabaseClock(
  postgres: Knex,
  functions: readonly ClockFunction[] = ['clock_timestamp'],
): Promise<(instant: Date) => Promise<void>> {
  const moved = functions.map(
    (name) => `create function moved.${name}() returns timestamptz language sql volatile as
       $$ select pg_catalog.${name}() + (select by from moved.shift) $$`,
  );
  await postgres.raw(
    `create schema moved;
     create table moved.shift (by interval not null);
     insert into moved.shift values ('0');
     ${moved.join(';')}`,
  );
  const { rows } = await postgres.raw('select current_database() as name');
  await postgres.raw('alter database ?? set search_path = moved, public, pg_catalog', [rows[0].name]);
  // This connection was opened earlier, so its search path is set here.
  await postgres.transaction(async (transaction) => {
    await transaction.raw('set search_path = moved, public, pg_catalog');
    await transaction.raw(
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    );
  });
  return async (instant) => {
    await postgres.raw('update moved.shift set by = ?::timestamptz - pg_catalog.clock_timestamp()', [
      instant.toISOString(),
    ]);
  };
}
