/**
 * Planner statistics after many rows were added at once. Until they are refreshed, Postgres may choose an index that narrows only by
 * tenant and environment, expecting one row, and read all rows of the environment. Autovacuum checks only once a minute.
 */
import type { Database } from '../../foundation/stores.ts';

/** Minimum number of changed rows for an analysis; fewer do not slow down any query. */
const ROWS_MIN = 500;

/**
 * Analyzes, by a sample, each table of which half has changed since its last analysis. ANALYZE blocks no reads or writes. A table without
 * the needed permission is left unchanged.
 */
export async function refreshStatistics(database: Database, tables: readonly string[]): Promise<void> {
  const { rows } = await database.raw(
    `select relname as name from pg_stat_user_tables
      where schemaname = current_schema() and relname = any(?) and n_mod_since_analyze > greatest(?, n_live_tup / 2)`,
    [[...tables], ROWS_MIN],
  );
  for (const { name } of rows as { name: string }[]) await database.raw('analyze ??', [name]);
}
