/** How the models change and remove records (model.ts): as statements that name their owner, told to the audit log (statements.ts). */
import type { Model } from 'objection';
import { byId } from '../../core/by-id.ts';
import { FarthingError } from '../../core/error.ts';
import { groupBy } from '../../core/group-by.ts';
import { updatedBy } from '../../core/stamp.ts';
import { anyDiffers } from './differs.ts';
import { givenRows } from './given-rows.ts';
import { isSideBySide, together } from './side-by-side.ts';
import { type ChangeOptions, type Class, keyOf, named, type Owner, queryOf, told, written } from './statements.ts';

type Change<M> = { owner: Owner; record: M & { id: string; version?: number }; changes: Partial<M> };
type Changes<M> = { owner: Owner; records: readonly M[]; changes: Partial<M>; version?: number };

/** A record that counts its versions is changed from the version that was read, and from no other. */
export async function changeOne<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, record, changes }: Change<M>,
  options: ChangeOptions,
): Promise<M> {
  const { version } = record;
  const versioned = version === undefined ? {} : { version };
  const change = { owner, records: [record], changes, ...versioned };
  const [changed] = isSideBySide(options.database)
    ? await patchTogether(model, { owner, record, changes }, options)
    : await patch(model, change, options);
  return changed ?? same(model, { owner, record }, options);
}

/** Each to values of its own, in one statement where they change the same columns; in their order. */
export async function changeEach<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, each }: { owner: Owner; each: readonly Own<M>[] },
  options: ChangeOptions,
): Promise<M[]> {
  const [first, ...others] = each;
  if (!first) return [];
  if (others.length === 0) return [await changeOne(model, { owner, ...first }, options)];
  const groups = groupBy(each, ({ record, changes }) => `${record.version === undefined} ${statedOf(changes)}`);
  const changed = new Map<string, M>();
  for (const asked of groups.values()) {
    const stated = statedOf(asked[0].changes);
    if (stated.length === 0) continue;
    for (const one of await patchAlike(model, { owner, stated, asked }, options)) changed.set(one.id, one);
  }
  const found = each.map(({ record }) => changed.get(record.id) ?? same(model, { owner, record }, options));
  return Promise.all(found);
}

/** It is that already. */
async function same<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, record }: Pick<Change<M>, 'owner' | 'record'>,
  { database }: ChangeOptions,
): Promise<M> {
  const { id, version } = record;
  const versioned = version === undefined ? {} : { version };
  const [found] = await queryOf(model, database)
    .where({ ...owner, ...versioned, id })
    .select('id');
  if (!found) throw new FarthingError('version_conflict', `${model.recordName} ${id} was changed in between`);
  return record;
}

/** Those that are another thing then (docs/rules/records.md, "Changing a record"): the others are not written, and not told. */
export async function patch<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, records, changes, version }: Changes<M>,
  { by, conflict, database }: ChangeOptions,
): Promise<M[]> {
  const before = byId(records);
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

/** The same of one, with others whose same columns change, each to values of its own. */
async function patchTogether<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, record, changes }: Change<M>,
  options: ChangeOptions,
): Promise<M[]> {
  const stated = statedOf(changes);
  // What is an expression of the database is no value.
  if (stated.some((column) => isExpression(changes[column as keyof M]))) {
    const { version } = record;
    const versioned = version === undefined ? {} : { version };
    return patch(model, { owner, records: [record], changes, ...versioned }, options);
  }
  if (stated.length === 0) return [];
  const key = keyOf('change', model, owner, stated, record.version === undefined, changedBy(options.by));
  const changed = await together(options.database, { key, asked: { record, changes } }, async (asked) => {
    const found = byId(await patchAlike(model, { owner, stated, asked }, options));
    return asked.map((one) => found.get(one.record.id));
  });
  return changed ? [changed] : [];
}

function statedOf(changes: object): string[] {
  return Object.entries(changes).flatMap(([column, value]) => (value === undefined ? [] : [column]));
}

type Own<M> = { readonly record: M & { id: string; version?: number }; readonly changes: Partial<M> };
type Alike<M> = { readonly owner: Owner; readonly stated: readonly string[]; readonly asked: readonly Own<M>[] };

/** In one statement, of records that all count their versions or none; those that are another thing then, as they are then. */
async function patchAlike<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, stated, asked }: Alike<M>,
  { by, conflict, database }: ChangeOptions,
): Promise<M[]> {
  const before = byId(asked.map(({ record }) => record));
  const stamps = changedBy(by);
  const isCounted = asked[0]!.record.version !== undefined;
  const columns = ['id', ...stated, ...Object.keys(stamps), ...(isCounted ? ['version'] : [])];
  const rows = asked.map(({ record, changes }) => ({
    ...changes,
    ...stamps,
    id: record.id,
    ...(isCounted ? { version: record.version } : {}),
  }));
  const sets = [...stated, ...Object.keys(stamps)].map((column) => `"${column}" = new."${column}"`);
  const differs = stated.map((column) => `old."${column}" is distinct from new."${column}"`).join(' or ');
  const owners = Object.keys(owner).map((column) => `old."${column}" = ?`);
  const isSame = isCounted ? ['old.version = new.version'] : [];
  const counted = isCounted ? ['version = old.version + 1'] : [];
  return told(model, database, async (transaction) => {
    const given = await givenRows(model, { columns, rows }, transaction);
    const text = `update ${model.tableName} as old set ${[...sets, ...counted].join(', ')} from (${given.sql}) as new
                   where ${['old.id = new.id', ...owners, ...isSame].join(' and ')} and (${differs}) returning old.*`;
    const values = [...given.values, ...Object.values(owner)];
    const writing = { text, values, conflict: conflict ?? `this ${model.recordName} exists already` };
    const changed = await written(model, transaction, writing);
    return changed.map((after) => ({ before: before.get(after.id)!, after }));
  });
}

/** Of Objection or of knex. */
function isExpression(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('toKnexRaw' in value || 'toSQL' in value);
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

function changedBy(by: ChangeOptions['by']) {
  return 'user_id' in by ? updatedBy(by) : { updated_at: by.now.toISOString() };
}
