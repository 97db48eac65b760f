/**
 * Passes rows to a statement in the form that Postgres reads fastest: a column with equal values as one parameter, any
 * other column as one list. JSON would repeat the column names and be parsed for each column and row.
 */

import type { Database } from '../../foundation/stores.ts';
import { loadColumnTypes } from './column-types.ts';
import { encodeTextArray } from './text-array.ts';

export type InputRows = readonly Readonly<Record<string, unknown>>[];

/** Source of given rows. `sql` selects them in their order, with the types of the table's columns. */
type RowsSource = { readonly sql: string; readonly values: readonly unknown[] };

type RowsTable = { readonly tableName: string; readonly jsonAttributes: readonly string[] | null | undefined };

/** Builds the source of rows for a statement. Every row has each of these columns; a missing value is null. */
export async function buildRowsSource(
  table: RowsTable,
  { columns, rows }: { columns: readonly string[]; rows: InputRows },
  database: Database,
): Promise<RowsSource> {
  const types = await loadColumnTypes(table, columns, database);
  const json = new Set(table.jsonAttributes);
  const own: string[] = [];
  const [lists, once]: [Buffer[], (string | null)[]] = [[], []];
  const selected = columns.map((column, index) => {
    const toText = json.has(column) ? jsonText : plainText;
    const texts = rows.map((row) => toText(row[column]));
    const type = types.get(column);
    // The first column is always a list, because it determines the number of rows.
    if (index > 0 && texts.every((text) => text === texts[0])) {
      return `$${once.push(texts[0] ?? null)}::text${type === 'text' ? '' : `::${type}`} as "${column}"`;
    }
    own.push(`"${column}"`);
    lists.push(encodeTextArray(texts));
    return `own."${column}"::${type} as "${column}"`;
  });
  const unnested = own.map((_, index) => `$${once.length + index + 1}::text[]`).join(', ');
  return {
    sql: `select ${selected.join(', ')} from unnest(${unnested}) as own (${own.join(', ')})`,
    values: [...once, ...lists],
  };
}

function jsonText(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

/** Converts a value to text: its JSON without quotes, or a Postgres array for a list. */
function plainText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return `{${value.map(quoted).join()}}`;
  const plain: unknown = JSON.parse(JSON.stringify(value));
  return typeof plain === 'string' ? plain : JSON.stringify(plain);
}

function quoted(value: unknown): string {
  const text = plainText(value);
  return text === null ? 'null' : `"${text.replace(/["\\]/g, '\\$&')}"`;
}
