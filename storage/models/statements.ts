/**
 * What the models ask and write, as statements: each names its owner, so that none reaches what is another's. What is written is
 * told to the audit log in the same transaction (tell-changes.ts). Models alone come through here (model.ts).
 */
import type { Model, QueryBuilderType } from 'objection';
import { indexById } from '../../core/by-id.ts';
import { alreadyExists, FarthingError, notFound } from '../../core/error.ts';
import { groupBy } from '../../core/group-by.ts';
import { type Author, updatedBy } from '../../core/stamp.ts';
import { currentCaller } from '../caller.ts';
import { failureOf } from '../failure.ts';
import type { Database } from '../stores.ts';
import { anyDiffers } from './differs.ts';
import { givenRows, type Rows } from './given-rows.ts';
import { noteEffects } from './request-effects.ts';
import { isSideBySide, together, write } from './side-by-side.ts';
import { inTransaction, type Told, tell } from './tell-changes.ts';

/** A model's class, as its static methods see it. */
export type Class<M extends Model> = {
  new (): M;
  tableName: string;
  recordName: string;
  isAudited: boolean;
  jsonAttributes: string[] | undefined;
  query: typeof Model.query;
  fromDatabaseJson: typeof Model.fromDatabaseJson;
};

export type FetchOptions = { database: Database; lock?: boolean | 'shared' };
export type AddOptions = { database: Database; conflict?: string };
/** `by` changes the record: a caller, or the clock alone. */
export type ChangeOptions = AddOptions & { by: Author | Pick<Author, 'now'> };
/** Ids as records name others: some name none, and several the same. */
export type Ids = Iterable<string | null | undefined>;
export type Owner = Readonly<Record<string, string>>;
type Changes<M> = { owner: Owner; records: readonly M[]; changes: Partial<M>; version?: number };

export function queryOf<M extends Model>(model: Class<M>, database: Database) {
  return model.query(database) as QueryBuilderType<M>;
}

export async function fetchOne<M extends Model>(
  model: Class<M>,
  owner: Record<string, string>,
  id: string,
  { database, lock }: FetchOptions,
): Promise<M> {
  const answerAll = async (ids: readonly string[]) => {
    const question = queryOf(model, database).where(owner);
    const narrowed = ids.length === 1 ? question.where('id', ids[0]!) : question.whereIn('id', [...ids]).orderBy('id');
    const held = lock === 'shared' ? narrowed.forShare() : lock ? narrowed.forUpdate() : narrowed;
    const found = new Map(((await held) as (M & { id: string })[]).map((record) => [record.id, record]));
    return ids.map((one) => found.get(one));
  };
  const record = await together(database, { key: keyOf('fetch', model, owner, lock), asked: id }, answerAll);
  if (!record) throw notFound(model.recordName, id);
  return record;
}

/** What may go as one statement: of one table and owner, and alike in everything else. */
export function keyOf(what: string, { tableName }: { tableName: string }, ...alike: unknown[]): string {
  return JSON.stringify([what, tableName, ...alike]);
}

/** Every record whose column has this value, in this order. */
export type ListAsked = {
  readonly column: string;
  readonly value: string;
  readonly where: Readonly<Record<string, unknown>>;
  readonly order: readonly string[];
  readonly database: Database;
};

export async function fetchList<M extends Model>(
  model: Class<M>,
  owner: Owner,
  { column, value, where, order, database }: ListAsked,
): Promise<M[]> {
  return together(
    database,
    { key: keyOf('list', model, owner, column, where, order), asked: value },
    async (values) => {
      const question = queryOf(model, database).where({ ...owner, ...where });
      const narrowed = values.length === 1 ? question.where(column, values[0]!) : question.whereIn(column, [...values]);
      const found = groupBy((await narrowed.orderBy([...order])) as M[], (record) => String(record[column as keyof M]));
      return values.map((one) => found.get(one) ?? []);
    },
  );
}

export async function insertOne<M extends Model>(
  model: Class<M>,
  record: Record<string, unknown>,
  { database, conflict }: AddOptions,
): Promise<M> {
  const options = { database, conflict: conflict ?? `this ${model.recordName} exists already` };
  const insert = isSideBySide(database) ? insertTogether : inserted;
  const [added] = await insert(model, [record], options);
  return added!;
}

/** The same of what is told to nobody else, without the way back: of long values it costs as much as the way there. */
export async function appendOne<M extends Model>(
  model: Class<M>,
  record: Record<string, unknown>,
  { database }: Pick<AddOptions, 'database'>,
): Promise<void> {
  if (currentCaller()?.key)
    return inTransaction(database, async (transaction) => {
      await queryOf(model, transaction).insert(record as never);
      await noteEffects([{ before: null, after: record }], entityType(model), transaction);
    });
  if (!isSideBySide(database)) return void (await queryOf(model, database).insert(record as never));
  const columns = Object.keys(record);
  const asked = { key: keyOf('append', model, columns), asked: record };
  const append = async (rows: Rows) => {
    await appendRows(model, { columns, rows }, database);
    return rows;
  };
  await write(database, () => together(database, asked, append));
}

/** The same of several, in one statement; the next may be made ready meanwhile (side-by-side.ts). */
export async function appendAll<M extends Model>(
  model: Class<M>,
  rows: Rows,
  { database }: Pick<AddOptions, 'database'>,
): Promise<void> {
  const [first] = rows;
  if (!first) return;
  if (currentCaller()?.key) for (const row of rows) await appendOne(model, row, { database });
  else await write(database, () => appendRows(model, { columns: Object.keys(first), rows }, database));
}

async function appendRows<M extends Model>(
  model: Class<M>,
  { columns, rows }: { columns: readonly string[]; rows: Rows },
  database: Database,
): Promise<void> {
  const { sql, values } = await givenRows(model, { columns, rows }, database);
  await database.raw(`${insertOf(model, columns)} ${sql}`, values as never);
}

function insertOf({ tableName }: { tableName: string }, columns: readonly string[]): string {
  return `insert into ${tableName} (${columns.map((column) => `"${column}"`).join(', ')})`;
}

/** A statement has at most 65,535 parameters, and no record has a hundred columns. */
const ROWS_AT_ONCE = 500;

export async function insertAll<M extends Model>(
  model: Class<M>,
  records: readonly Record<string, unknown>[],
  { database, conflict }: AddOptions,
): Promise<M[]> {
  const options = { database, conflict: conflict ?? `one of these ${model.recordName}s exists already` };
  if (isSideBySide(database) && records.length > 0) return insertTogether(model, records, options);
  const added: M[] = [];
  for (let from = 0; from < records.length; from += ROWS_AT_ONCE)
    added.push(...(await inserted(model, records.slice(from, from + ROWS_AT_ONCE), options)));
  return added;
}

/** In one statement. */
function inserted<M extends Model>(
  model: Class<M>,
  rows: readonly Record<string, unknown>[],
  { database, conflict }: { database: Database; conflict: string },
): Promise<M[]> {
  return told(model, database, async (transaction) => {
    try {
      const added = await queryOf(model, transaction)
        .insert(rows as never)
        .returning('*');
      return (added as unknown as M[]).map((after) => ({ before: null, after }));
    } catch (error) {
      throw named(error, conflict);
    }
  });
}

/** With the rows of others that have the same columns, as one value: there is no limit to how many. */
function insertTogether<M extends Model>(
  model: Class<M>,
  rows: Rows,
  { database, conflict }: { database: Database; conflict: string },
): Promise<M[]> {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row).filter((column) => row[column] !== undefined)))];
  const isAlike = rows.every((row) => columns.every((column) => row[column] !== undefined));
  if (!isAlike) return inserted(model, rows, { database, conflict });
  const { tenant_id, environment_id, updated_by } = rows[0]!;
  const key = keyOf('insert', model, tenant_id, environment_id, updated_by, columns);
  return together(database, { key, asked: rows }, async (asked) => {
    const added = await told(model, database, async (transaction) => {
      const { sql, values } = await givenRows(model, { columns, rows: asked.flat() }, transaction);
      const text = `${insertOf(model, columns)} ${sql} returning *`;
      return (await written(model, transaction, { text, values, conflict })).map((after) => ({ before: null, after }));
    });
    let from = 0;
    return asked.map(({ length }) => added.slice(from, (from += length)));
  });
}

type Writing = { text: string; values: readonly unknown[]; conflict: string };

export async function written<M extends Model>(
  model: Class<M>,
  database: Database,
  { text, values, conflict }: Writing,
): Promise<M[]> {
  try {
    const answer = await database.raw(text, values as never);
    return answer.rows.map((row: object) => model.fromDatabaseJson(row) as M);
  } catch (error) {
    throw named(error, conflict);
  }
}

/** Writes, and tells what was written, in one transaction. */
export async function told<M extends Model>(
  model: Class<M>,
  database: Database,
  write: (database: Database) => Promise<Told<M>[]>,
): Promise<M[]> {
  const results = (changes: Told<M>[]) => changes.flatMap(({ after }) => after ?? []);
  if (!model.isAudited && !currentCaller()?.key) return results(await write(database));
  return inTransaction(database, async (transaction) => {
    const changes = await write(transaction);
    await noteEffects(changes, entityType(model), transaction);
    if (!model.isAudited) return results(changes);
    const first = changes[0]?.after ?? changes[0]?.before;
    if (first) await tell(changes, { entity_type: entityType(model), ...ownerOf(model, first) }, transaction);
    return results(changes);
  });
}

/** `subscription_line_item` */
export function entityType({ recordName }: { recordName: string }): string {
  return recordName.toLowerCase().replaceAll('-', '').replaceAll(' ', '_');
}

/** What lies above the environments has none. */
function ownerOf<M extends Model>(model: Class<M> & { tenantColumn?: string }, record: M) {
  const row = record as unknown as Record<string, string | null | undefined>;
  const isScoped = model.tenantColumn === undefined;
  return {
    tenant_id: row[model.tenantColumn ?? 'tenant_id']!,
    environment_id: (isScoped ? row.environment_id : null) ?? '',
  };
}

export async function fetchById<M extends Model & { id: string }>(
  model: Class<M>,
  owner: Record<string, string>,
  { ids, database }: { ids: Ids; database: Database },
): Promise<Map<string, M>> {
  const wanted = [...new Set(ids)].filter((id): id is string => Boolean(id));
  if (wanted.length === 0) return new Map();
  return together(database, { key: keyOf('by id', model, owner), asked: wanted }, async (asked) => {
    const all = [...new Set(asked.flat())];
    const found = new Map<string, M>();
    // Many are read some hundreds at a time, between which others have their turn.
    for (let from = 0; from < all.length; from += RECORDS_AT_ONCE) {
      const some = all.slice(from, from + RECORDS_AT_ONCE);
      for (const one of (await queryOf(model, database).where(owner).whereIn('id', some)) as M[])
        found.set(one.id, one);
    }
    if (asked.length === 1) return [found];
    return asked.map((ids) => indexById(ids.flatMap((id) => found.get(id) ?? [])));
  });
}

const RECORDS_AT_ONCE = 1_000;

/** Those that are another thing then (docs/rules/records.md, "Changing a record"): the others are not written, and not told. */
export async function patch<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, records, changes, version }: Changes<M>,
  { by, conflict, database }: ChangeOptions,
): Promise<M[]> {
  const before = indexById(records);
  const stated = Object.entries(changes).filter(([, value]) => value !== undefined);
  if (stated.length === 0) return [];
  const versions = version === undefined ? {} : { version: version + 1 };
  return told(model, database, async (transaction) => {
    const those = queryOf(model, transaction)
      .where(owner)
      .whereIn('id', [...before.keys()])
      .where(anyDiffers(model, stated));
    const question = version === undefined ? those : those.where('version', version);
    try {
      const written = { ...changes, ...versions, ...changedBy(by) };
      const changed = await question.patch(written as never).returning('*');
      return (changed as unknown as M[]).map((after) => ({ before: before.get(after.id)!, after }));
    } catch (error) {
      throw named(error, conflict ?? `this ${model.recordName} exists already`);
    }
  });
}

/** Takes a record away for good: what is archived stays, and is changed. */
export async function removeOne<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, record }: { owner: Owner; record: M },
  { by, database }: ChangeOptions,
): Promise<void> {
  await told(model, database, async (transaction) => {
    const removed = await queryOf(model, transaction).where(owner).where('id', record.id).delete();
    return Number(removed) === 0 ? [] : [{ before: record, after: null, at: by.now.toISOString() }];
  });
}

export function changedBy(by: ChangeOptions['by']) {
  return 'user_id' in by ? updatedBy(by) : { updated_at: by.now.toISOString() };
}

/** Postgres' word for a broken unique index as ours; anything else stays what it is. */
export function named(error: unknown, conflict: string): unknown {
  if (error instanceof FarthingError) return error;
  return failureOf(error) === 'conflict' ? alreadyExists(conflict) : error;
}
