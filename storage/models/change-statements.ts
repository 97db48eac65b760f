/** How the models change records (model.ts), each to values of its own: as statements that name their owner, told to the audit log (statements.ts). */
import type { Model } from 'objection';
import { indexById } from '../../core/by-id.ts';
import { FarthingError } from '../../core/error.ts';
import { groupBy } from '../../core/group-by.ts';
import { givenRows } from './given-rows.ts';
import { isSideBySide, together } from './side-by-side.ts';
import {
  type ChangeOptions,
  type Class,
  changedBy,
  keyOf,
  type Owner,
  patch,
  queryOf,
  told,
  written,
} from './statements.ts';

type Change<M> = { owner: Owner; record: M & { id: string; version?: number }; changes: Partial<M> };

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
  const groups = groupBy(each, ({ record, changes }) => `${record.version === undefined} ${statedOf(changes).join()}`);
  const changed = new Map<string, M>();
  for (const asked of groups.values()) {
    const stated = statedOf(asked[0].changes);
    if (stated.length === 0) continue;
    for (const one of await patchAlike(model, { owner, stated, asked }, options)) changed.set(one.id, one);
  }
  const found: M[] = [];
  for (const { record } of each) found.push(changed.get(record.id) ?? (await same(model, { owner, record }, options)));
  return found;
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
    const found = indexById(await patchAlike(model, { owner, stated, asked }, options));
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
  const before = indexById(asked.map(({ record }) => record));
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
