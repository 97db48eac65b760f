/**
 * What Postgres knows of how its rows are spread, where more of them have come at once than it has looked at. Until then it takes every index
 * that begins with the scope for one that finds a row, and reads all of an environment by any of them. By itself it looks once a minute.
 */
import type { Database } from '../stores.ts';

/** Below it nothing is slow. */
const ROWS_MIN = 500;

/**
 * Looks again at those of the tables that have changed by half since it looked last: a sample of each. Nobody waits for it, and a table of
 * which this role may not is left as it is.
 */
export async function refreshStatistics(database: Database, tables: readonly string[]): Promise<void> {
  const { rows } = await database.raw(
    `select relname as name from pg_stat_user_tables
      where schemaname = current_schema() and relname = any(?) and n_mod_since_analyze > greatest(?, n_live_tup / 2)`,
    [[...tables], ROWS_MIN],
  );
  for (const { name } of rows as { name: string }[]) await database.raw('analyze ??', [name]);
}
