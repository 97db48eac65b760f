/**
 * SQL statements of the models. Each names its owner, so none reaches rows of another tenant. Changes are audited in
 * the same transaction (record-changes.ts). Only the models import this file (model.ts).
 */
import type { Model, QueryBuilderType } from 'objection';
import { indexById } from '../../../core/foundation/by-id.ts';
import { alreadyExists, FarthingError, notAllowed, notFound } from '../../../core/foundation/error.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { type Author, updatedBy } from '../../../core/foundation/stamp.ts';
import { joinBatch } from '../../concurrency/batched.ts';
import { classifyFailure } from '../../foundation/failure.ts';
import { currentRequestContext } from '../../foundation/request-context.ts';
import type { Database } from '../../foundation/stores.ts';
import { PREPARED } from '../../postgres/interceptors/bundled-statements.ts';
import { type CompleteStatement, sendStatement } from '../../postgres/pool/statement-client.ts';
import { buildDiffersCondition } from './differs.ts';
import { type RecordChange, recordChanges, runInTransaction } from './record-changes.ts';
import { recordEffects } from './request-effects.ts';
import { checkLocked, findGuardedTarget, noteRead, noteWritten } from './target-record.ts';

/** Class of a model, as static methods of the model use it. */
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
/** Options of a change. `by` is its author: a user, or only a time. */
export type ChangeOptions = AddOptions & { by: Author | Pick<Author, 'now'> };
/** Ids referenced by records; may contain nulls and duplicates. */
export type Ids = Iterable<string | null | undefined>;
export type RecordOwner = Readonly<Record<string, string>>;
type RecordPatch<M> = { owner: RecordOwner; records: readonly M[]; changes: Partial<M>; version?: number };

export function buildQuery<M extends Model>(model: Class<M>, database: Database) {
  return model.query(database) as QueryBuilderType<M>;
}

export async function fetchOne<M extends Model>(
  model: Class<M>,
  owner: Record<string, string>,
  id: string,
  { database, lock }: FetchOptions,
): Promise<M> {
  const answerAll = async (ids: readonly string[]) => {
    const isOne = ids.length === 1;
    const text = `${buildSelect(model, owner, { column: 'id', isOne })}${isOne ? '' : ' order by "id" asc'}`;
    const locking = lock === 'shared' ? ' for share' : lock ? ' for update' : '';
    const values = [...Object.values(owner), isOne ? ids[0] : ids];
    const found = new Map(
      (await executeRead(model, database, { text: text + locking, values })).map((record) => [record.id, record]),
    );
    return ids.map((one) => found.get(one));
  };
  const record = await joinBatch(database, { key: toBatchKey('fetch', model, owner, lock), query: id }, answerAll);
  if (!record) throw notFound(model.recordName, id);
  noteRead(record);
  if (lock) checkLocked(record, model.recordName, database);
  return record;
}

/** Loads and locks a published record for a change. An archived one can be read, but not changed. */
export async function fetchChangeable<M extends Model & { status: string }>(
  model: Class<M>,
  owner: RecordOwner,
  id: string,
  database: Database,
): Promise<M> {
  const record = await fetchOne(model, owner, id, { database, lock: true });
  if (record.status === 'archived') throw notAllowed(`${model.recordName} ${id} is archived`, { id });
  if (record.status !== 'published') throw notFound(model.recordName, id);
  return record;
}

/**
 * Runs a change of these records. If the request has an `If-Match` for one of them, that record is locked and compared
 * before, in the transaction of the change.
 */
export async function runGuarded<M extends Model, Result>(
  model: Class<M>,
  { owner, ids, database }: { owner: RecordOwner; ids: readonly string[]; database: Database },
  change: (database: Database) => Promise<Result>,
): Promise<Result> {
  const target = findGuardedTarget(ids, database);
  if (target === undefined) return change(database);
  return runInTransaction(database, async (transaction) => {
    await fetchOne(model, owner, target.id!, { database: transaction, lock: true });
    return change(transaction);
  });
}

/** Builds the key of statements that can be batched: they have the same table, owner and `alike` parts. */
export function toBatchKey(what: string, { tableName }: { tableName: string }, ...alike: unknown[]): string {
  return JSON.stringify([what, tableName, ...alike]);
}

/** Query for the records whose column has a value, in the given order. */
export type ListByValueQuery = {
  readonly column: string;
  readonly value: string;
  readonly where: Readonly<Record<string, string>>;
  readonly order: readonly string[];
  readonly database: Database;
};

export async function fetchList<M extends Model>(
  model: Class<M>,
  owner: RecordOwner,
  { column, value, where, order, database }: ListByValueQuery,
): Promise<M[]> {
  return joinBatch(
    database,
    { key: toBatchKey('list', model, owner, column, where, order), query: value },
    async (values) => {
      const equal = { ...owner, ...where };
      const isOne = values.length === 1;
      const orders = order.map((name) => `"${name}" asc`).join(', ');
      const text = `${buildSelect(model, equal, { column, isOne })} order by ${orders}`;
      const list = await executeRead(model, database, {
        text,
        values: [...Object.values(equal), isOne ? values[0] : values],
      });
      const found = groupBy(list, (record) => String(record[column as keyof M]));
      return values.map((one) => found.get(one) ?? []);
    },
  );
}

/**
 * Builds the text that finds rows by equal columns and by a value, or a list of values, of one more column. A list of one value is compared by
 * `=`: Postgres plans a prepared statement with a list of unknown length each time.
 */
function buildSelect(
  { tableName }: { tableName: string },
  equal: Readonly<Record<string, string>>,
  { column, isOne }: { column: string; isOne: boolean },
): string {
  const columns = Object.keys(equal);
  const conditions = columns.map((name, index) => `"${name}" = $${index + 1} and `);
  const parameter = `$${columns.length + 1}`;
  return `select * from "${tableName}" where ${conditions.join('')}"${column}" = ${isOne ? parameter : `any(${parameter})`}`;
}

/** Executes a statement that finds rows by their ids, or by a value of a column. */
async function executeRead<M extends Model>(
  model: Class<M>,
  database: Database,
  { text, values }: Pick<CompleteStatement, 'text' | 'values'>,
): Promise<(M & { id: string })[]> {
  const { rows } = await sendStatement(database, { text, values, ...PREPARED });
  return rows.map((row) => model.fromDatabaseJson(row) as M & { id: string });
}

type WriteStatement = CompleteStatement & { readonly conflict: string };

export async function executeWrite<M extends Model>(
  model: Class<M>,
  database: Database,
  { conflict, ...statement }: WriteStatement,
): Promise<M[]> {
  try {
    const { rows } = await sendStatement(database, statement);
    return rows.map((row) => model.fromDatabaseJson(row) as M);
  } catch (error) {
    throw toConflictError(error, conflict);
  }
}

/** Writes, and records the changes in the audit log, in one transaction. */
export async function writeAudited<M extends Model>(
  model: Class<M>,
  database: Database,
  write: (database: Database) => Promise<RecordChange<M>[]>,
): Promise<M[]> {
  const results = (changes: RecordChange<M>[]) => changes.flatMap(({ after }) => after ?? []);
  if (!model.isAudited && !currentRequestContext()?.key) {
    const changes = await write(database);
    noteWritten(changes);
    return results(changes);
  }
  return runInTransaction(database, async (transaction) => {
    const changes = await write(transaction);
    noteWritten(changes);
    await recordEffects(changes, toEntityType(model), transaction);
    if (!model.isAudited) return results(changes);
    const first = changes[0]?.after ?? changes[0]?.before;
    if (first)
      await recordChanges(changes, { entity_type: toEntityType(model), ...toRecordOwner(model, first) }, transaction);
    return results(changes);
  });
}

/** Derives the entity type of audit entries, e.g. `subscription_line_item`. */
export function toEntityType({ recordName }: { recordName: string }): string {
  return recordName.toLowerCase().replaceAll('-', '').replaceAll(' ', '_');
}

/** Returns tenant and environment of a record. The environment is '' for a record that belongs to none. */
function toRecordOwner<M extends Model>(model: Class<M> & { tenantColumn?: string }, record: M) {
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
  return joinBatch(database, { key: toBatchKey('by id', model, owner), query: wanted }, async (queries) => {
    const all = [...new Set(queries.flat())];
    const found = new Map<string, M>();
    const isOne = all.length === 1;
    const text = buildSelect(model, owner, { column: 'id', isOne });
    // Reads many records in batches, so that other work can run in between.
    for (let from = 0; from < all.length; from += RECORDS_AT_ONCE) {
      const values = [...Object.values(owner), isOne ? all[0] : all.slice(from, from + RECORDS_AT_ONCE)];
      for (const one of await executeRead(model, database, { text, values })) found.set(one.id, one);
    }
    if (queries.length === 1) return [found];
    return queries.map((ids) => indexById(ids.flatMap((id) => found.get(id) ?? [])));
  });
}

const RECORDS_AT_ONCE = 1_000;

/**
 * Changes the records that differ (docs/rules/records.md, "Changing a record"). Records without a difference are
 * neither written nor audited.
 */
export async function patch<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, records, changes, version }: RecordPatch<M>,
  { by, conflict, database }: ChangeOptions,
): Promise<M[]> {
  const changed_values = Object.entries(changes).filter(([, value]) => value !== undefined);
  const ids = records.map(({ id }) => id);
  return runGuarded(model, { owner, ids, database }, async (guarded) => {
    if (changed_values.length === 0) return [];
    const before = indexById(records);
    const versions = version === undefined ? {} : { version: version + 1 };
    return writeAudited(model, guarded, async (transaction) => {
      const those = buildQuery(model, transaction)
        .where(owner)
        .whereIn('id', [...before.keys()])
        .where(buildDiffersCondition(model, changed_values));
      const question = version === undefined ? those : those.where('version', version);
      try {
        const written = { ...changes, ...versions, ...buildUpdateStamp(by) };
        const changed = await question.patch(written as never).returning('*');
        return (changed as unknown as M[]).map((after) => ({ before: before.get(after.id)!, after }));
      } catch (error) {
        throw toConflictError(error, conflict ?? `this ${model.recordName} exists already`);
      }
    });
  });
}

/** Deletes a record permanently; archiving is a change instead. */
export async function removeOne<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, record }: { owner: RecordOwner; record: M },
  { by, database }: ChangeOptions,
): Promise<void> {
  await runGuarded(model, { owner, ids: [record.id], database }, (guarded) =>
    writeAudited(model, guarded, async (transaction) => {
      const removed = await buildQuery(model, transaction).where(owner).where('id', record.id).delete();
      return Number(removed) === 0 ? [] : [{ before: record, after: null, at: by.now.toISOString() }];
    }),
  );
}

export function buildUpdateStamp(by: ChangeOptions['by']) {
  return 'user_id' in by ? updatedBy(by) : { updated_at: by.now.toISOString() };
}

/** Turns a unique violation into `already_exists`; returns other errors unchanged. */
export function toConflictError(error: unknown, conflict: string): unknown {
  if (error instanceof FarthingError) return error;
  return classifyFailure(error) === 'conflict' ? alreadyExists(conflict) : error;
}
