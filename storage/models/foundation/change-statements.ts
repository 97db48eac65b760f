/**
 * Updates records for the models (model.ts), each record to its own values. Every statement names the owner and writes
 * an audit entry (statements.ts).
 */
import type { Model } from 'objection';
import { indexById } from '../../../core/foundation/by-id.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { isBatched, joinBatch } from '../../concurrency/batched.ts';
import { buildRowsSource } from './given-rows.ts';
import {
  buildQuery,
  buildUpdateStamp,
  type ChangeOptions,
  type Class,
  executeWrite,
  patch,
  type RecordOwner,
  runGuarded,
  toBatchKey,
  writeAudited,
} from './statements.ts';

type RecordUpdate<M> = { owner: RecordOwner; record: M & { id: string; version?: number }; changes: Partial<M> };

/** Updates one record. If it has a version, the stored version must be the one that was read. */
export async function updateOne<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, record, changes }: RecordUpdate<M>,
  options: ChangeOptions,
): Promise<M> {
  const { version } = record;
  const versioned = version === undefined ? {} : { version };
  const change = { owner, records: [record], changes, ...versioned };
  return runGuarded(model, { owner, ids: [record.id], database: options.database }, async (database) => {
    const guarded = { ...options, database };
    const [changed] = isBatched(database)
      ? await patchBatched(model, { owner, record, changes }, guarded)
      : await patch(model, change, guarded);
    return changed ?? same(model, { owner, record }, guarded);
  });
}

/**
 * Updates each record to its own values, with one statement per set of changed columns. Returns the records in their
 * order.
 */
export async function updateEach<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, each }: { owner: RecordOwner; each: readonly Own<M>[] },
  options: ChangeOptions,
): Promise<M[]> {
  const [first, ...others] = each;
  if (!first) return [];
  if (others.length === 0) return [await updateOne(model, { owner, ...first }, options)];
  const ids = each.map(({ record }) => record.id);
  return runGuarded(model, { owner, ids, database: options.database }, (database) =>
    updateGroups(model, { owner, each }, { ...options, database }),
  );
}

async function updateGroups<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, each }: { owner: RecordOwner; each: readonly Own<M>[] },
  options: ChangeOptions,
): Promise<M[]> {
  const groups = groupBy(
    each,
    ({ record, changes }) => `${record.version === undefined} ${listChangedColumns(changes).join()}`,
  );
  const changed = new Map<string, M>();
  for (const updates of groups.values()) {
    const changed_columns = listChangedColumns(updates[0].changes);
    if (changed_columns.length === 0) continue;
    for (const one of await patchAlike(model, { owner, columns: changed_columns, records: updates }, options))
      changed.set(one.id, one);
  }
  const found: M[] = [];
  for (const { record } of each) found.push(changed.get(record.id) ?? (await same(model, { owner, record }, options)));
  return found;
}

/** Returns the record unchanged if its version is still current; otherwise throws `version_conflict`. */
async function same<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, record }: Pick<RecordUpdate<M>, 'owner' | 'record'>,
  { database }: ChangeOptions,
): Promise<M> {
  const { id, version } = record;
  const versioned = version === undefined ? {} : { version };
  const [found] = await buildQuery(model, database)
    .where({ ...owner, ...versioned, id })
    .select('id');
  if (!found) throw new FarthingError('version_conflict', `${model.recordName} ${id} was changed in between`);
  return record;
}

/** Updates a record. Concurrent updates of the same columns of other records are joined into one statement. */
async function patchBatched<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, record, changes }: RecordUpdate<M>,
  options: ChangeOptions,
): Promise<M[]> {
  const changed_columns = listChangedColumns(changes);
  // An SQL expression cannot be a parameter, so such a change cannot be batched.
  if (changed_columns.some((column) => isExpression(changes[column as keyof M]))) {
    const { version } = record;
    const versioned = version === undefined ? {} : { version };
    return patch(model, { owner, records: [record], changes, ...versioned }, options);
  }
  if (changed_columns.length === 0) return [];
  const key = toBatchKey(
    'change',
    model,
    owner,
    changed_columns,
    record.version === undefined,
    buildUpdateStamp(options.by),
  );
  const changed = await joinBatch(options.database, { key, query: { record, changes } }, async (updates) => {
    const found = indexById(await patchAlike(model, { owner, columns: changed_columns, records: updates }, options));
    return updates.map((one) => found.get(one.record.id));
  });
  return changed ? [changed] : [];
}

function listChangedColumns(changes: object): string[] {
  return Object.entries(changes).flatMap(([column, value]) => (value === undefined ? [] : [column]));
}

type Own<M> = { readonly record: M & { id: string; version?: number }; readonly changes: Partial<M> };
type Alike<M> = {
  readonly owner: RecordOwner;
  readonly columns: readonly string[];
  readonly records: readonly Own<M>[];
};

/** Updates records with one statement. Either all of them have a version or none. Returns only records that changed. */
async function patchAlike<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, columns: changed_columns, records: updates }: Alike<M>,
  { by, conflict, database }: ChangeOptions,
): Promise<M[]> {
  const before = indexById(updates.map(({ record }) => record));
  const stamps = buildUpdateStamp(by);
  const isCounted = updates[0]!.record.version !== undefined;
  const columns = ['id', ...changed_columns, ...Object.keys(stamps), ...(isCounted ? ['version'] : [])];
  const rows = updates.map(({ record, changes }) => ({
    ...changes,
    ...stamps,
    id: record.id,
    ...(isCounted ? { version: record.version } : {}),
  }));
  const sets = [...changed_columns, ...Object.keys(stamps)].map((column) => `"${column}" = new."${column}"`);
  const differs = changed_columns.map((column) => `old."${column}" is distinct from new."${column}"`).join(' or ');
  const isSame = isCounted ? ['old.version = new.version'] : [];
  const counted = isCounted ? ['version = old.version + 1'] : [];
  return writeAudited(model, database, async (transaction) => {
    const given = await buildRowsSource(model, { columns, rows }, transaction);
    const owners = Object.keys(owner).map((column, index) => `old."${column}" = $${given.values.length + index + 1}`);
    const text = `update ${model.tableName} as old set ${[...sets, ...counted].join(', ')} from (${given.sql}) as new
                   where ${['old.id = new.id', ...owners, ...isSame].join(' and ')} and (${differs}) returning old.*`;
    const values = [...given.values, ...Object.values(owner)];
    const writing = { text, values, conflict: conflict ?? `this ${model.recordName} exists already` };
    const changed = await executeWrite(model, transaction, writing);
    return changed.map((after) => ({ before: before.get(after.id)!, after }));
  });
}

/** Whether the value is an SQL expression of Objection or Knex. */
function isExpression(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('toKnexRaw' in value || 'toSQL' in value);
}
