/** Inserts records for the models (model.ts). Inserts are audited in the same transaction, except for tables without audit (statements.ts). */
import type { Model } from 'objection';
import { isBatched, joinBatch, write } from '../../concurrency/batched.ts';
import { currentRequestContext } from '../../foundation/request-context.ts';
import type { Database } from '../../foundation/stores.ts';
import { DEFERRED, PREPARED } from '../../postgres/interceptors/bundled-statements.ts';
import { sendStatement } from '../../postgres/pool/statement-client.ts';
import { buildRowsSource, type InputRows } from './given-rows.ts';
import { runInTransaction } from './record-changes.ts';
import { recordEffects } from './request-effects.ts';
import {
  type AddOptions,
  buildQuery,
  type Class,
  executeWrite,
  toBatchKey,
  toConflictError,
  toEntityType,
  writeAudited,
} from './statements.ts';

export async function insertOne<M extends Model>(
  model: Class<M>,
  record: Record<string, unknown>,
  { database, conflict }: AddOptions,
): Promise<M> {
  const options = { database, conflict: conflict ?? `this ${model.recordName} exists already` };
  const insert = isBatched(database) ? insertBatched : inserted;
  const [added] = await insert(model, [record], options);
  return added!;
}

/**
 * Inserts a record of a table without audit and does not read it back, because returning long values would double the
 * cost.
 */
export async function appendOne<M extends Model>(
  model: Class<M>,
  record: Record<string, unknown>,
  { database }: Pick<AddOptions, 'database'>,
): Promise<void> {
  if (currentRequestContext()?.key)
    return runInTransaction(database, async (transaction) => {
      await appendRow(model, record, transaction);
      await recordEffects([{ before: null, after: record }], toEntityType(model), transaction);
    });
  if (!isBatched(database)) return write(database, () => appendRow(model, record, database));
  const columns = Object.keys(record);
  const queries = { key: toBatchKey('append', model, columns), query: record };
  const append = async (rows: InputRows) => {
    await appendRows(model, { columns, rows }, database);
    return rows;
  };
  await write(database, () => joinBatch(database, queries, append));
}

async function appendRow<M extends Model>(
  model: Class<M>,
  record: Readonly<Record<string, unknown>>,
  database: Database,
): Promise<void> {
  await sendStatement(database, { ...buildInsertOne(model, record), ...DEFERRED });
}

/**
 * Inserts several records in one statement. In a batched transaction the next statement is prepared while this one runs
 * (concurrency/batched.ts).
 */
export async function appendAll<M extends Model>(
  model: Class<M>,
  rows: InputRows,
  { database }: Pick<AddOptions, 'database'>,
): Promise<void> {
  const [first] = rows;
  if (!first) return;
  if (currentRequestContext()?.key) for (const row of rows) await appendOne(model, row, { database });
  else await write(database, () => appendRows(model, { columns: Object.keys(first), rows }, database));
}

async function appendRows<M extends Model>(
  model: Class<M>,
  { columns, rows }: { columns: readonly string[]; rows: InputRows },
  database: Database,
): Promise<void> {
  const { sql, values } = await buildRowsSource(model, { columns, rows }, database);
  const options = isBatched(database) ? PREPARED : DEFERRED;
  await sendStatement(database, { text: `${buildInsertInto(model, columns)} ${sql}`, values, ...options });
}

function buildInsertInto({ tableName }: { tableName: string }, columns: readonly string[]): string {
  return `insert into ${tableName} (${columns.map((column) => `"${column}"`).join(', ')})`;
}

/** Maximum number of rows per statement, which has at most 65,535 parameters. No record has a hundred columns. */
const ROWS_AT_ONCE = 500;

export async function insertAll<M extends Model>(
  model: Class<M>,
  records: readonly Record<string, unknown>[],
  { database, conflict }: AddOptions,
): Promise<M[]> {
  const options = { database, conflict: conflict ?? `one of these ${model.recordName}s exists already` };
  if (isBatched(database) && records.length > 0) return insertBatched(model, records, options);
  const added: M[] = [];
  for (let from = 0; from < records.length; from += ROWS_AT_ONCE)
    added.push(...(await inserted(model, records.slice(from, from + ROWS_AT_ONCE), options)));
  return added;
}

function inserted<M extends Model>(
  model: Class<M>,
  rows: readonly Record<string, unknown>[],
  { database, conflict }: { database: Database; conflict: string },
): Promise<M[]> {
  return writeAudited(model, database, async (transaction) => {
    const added = await (rows.length === 1
      ? insertRow(model, rows[0]!, { database: transaction, conflict })
      : insertRows(model, rows, { database: transaction, conflict }));
    return added.map((after) => ({ before: null, after }));
  });
}

function insertRow<M extends Model>(
  model: Class<M>,
  row: Readonly<Record<string, unknown>>,
  { database, conflict }: { database: Database; conflict: string },
): Promise<M[]> {
  const { text, values } = buildInsertOne(model, row);
  return executeWrite(model, database, { text: `${text} returning *`, values, conflict, is_prepared: true });
}

async function insertRows<M extends Model>(
  model: Class<M>,
  rows: readonly Record<string, unknown>[],
  { database, conflict }: { database: Database; conflict: string },
): Promise<M[]> {
  try {
    return (await buildQuery(model, database)
      .insert(rows as never)
      .returning('*')) as unknown as M[];
  } catch (error) {
    throw toConflictError(error, conflict);
  }
}

/** Builds the insert of one row. Its undefined columns get their default. */
function buildInsertOne<M extends Model>(
  model: Class<M>,
  row: Readonly<Record<string, unknown>>,
): { text: string; values: unknown[] } {
  const columns = Object.keys(row).filter((column) => row[column] !== undefined);
  const json = model.jsonAttributes ?? [];
  const values = columns.map((column) => (json.includes(column) ? toJsonText(row[column]) : row[column]));
  return {
    text: `${buildInsertInto(model, columns)} values (${columns.map((_, index) => `$${index + 1}`).join(', ')})`,
    values,
  };
}

function toJsonText(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

/**
 * Inserts rows with one statement together with rows of concurrent callers that have the same columns. Each column is
 * one parameter, so the number of rows is unlimited.
 */
function insertBatched<M extends Model>(
  model: Class<M>,
  rows: InputRows,
  { database, conflict }: { database: Database; conflict: string },
): Promise<M[]> {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row).filter((column) => row[column] !== undefined)))];
  const isAlike = rows.every((row) => columns.every((column) => row[column] !== undefined));
  if (!isAlike) return inserted(model, rows, { database, conflict });
  const { tenant_id, environment_id, updated_by } = rows[0]!;
  const key = toBatchKey('insert', model, tenant_id, environment_id, updated_by, columns);
  return joinBatch(database, { key, query: rows }, async (queries) => {
    const added = await writeAudited(model, database, async (transaction) => {
      const { sql, values } = await buildRowsSource(model, { columns, rows: queries.flat() }, transaction);
      const text = `${buildInsertInto(model, columns)} ${sql} returning *`;
      return (await executeWrite(model, transaction, { text, values, conflict })).map((after) => ({
        before: null,
        after,
      }));
    });
    let from = 0;
    return queries.map(({ length }) => added.slice(from, (from += length)));
  });
}
