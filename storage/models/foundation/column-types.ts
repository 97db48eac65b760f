/** Reads the Postgres types of a table's columns. */
import type { Database } from '../../foundation/stores.ts';

type ColumnTypes = ReadonlyMap<string, string>;

const known = new Map<string, ColumnTypes>();

/** Loads the column types once per process, and again if one of the columns is unknown. */
export async function loadColumnTypes(
  { tableName }: { tableName: string },
  columns: readonly string[],
  database: Database,
): Promise<ColumnTypes> {
  const cached = known.get(tableName);
  if (cached && columns.every((column) => cached.has(column))) return cached;
  const { rows }: { rows: { name: string; type: string }[] } = await database.raw(
    `select attname as name, format_type(atttypid, atttypmod) as type
       from pg_catalog.pg_attribute where attrelid = ?::regclass and attnum > 0 and not attisdropped`,
    [tableName],
  );
  const types = new Map(rows.map(({ name, type }) => [name, type]));
  known.set(tableName, types);
  return types;
}
