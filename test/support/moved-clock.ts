/** Moves the clock of a test database: the search path finds this `now()` before the built-in function. */
import type { Knex } from 'knex';

/**
 * Must run before the rest of the test, because it replaces all connections. Returns a function that sets the clock.
 */
export async function moveDatabaseClock(postgres: Knex): Promise<(instant: Date) => Promise<void>> {
  await postgres.raw(
    `create schema moved;
     create table moved.shift (by interval not null);
     insert into moved.shift values ('0');
     create function moved.clock_timestamp() returns timestamptz language sql volatile as
       $$ select pg_catalog.clock_timestamp() + (select by from moved.shift) $$`,
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
