/**
 * What the models ask and write, as statements: each names its owner, so that none reaches what is another's. What is written is
 * told to the audit log in the same transaction (tell-changes.ts). Models alone come through here (model.ts).
 */
import type { Model, QueryBuilderType } from 'objection';
import { byId } from '../../core/by-id.ts';
import { alreadyExists, FarthingError, notFound } from '../../core/error.ts';
import { type Author, updatedBy } from '../../core/stamp.ts';
import { failureOf } from '../failure.ts';
import type { Database } from '../stores.ts';
import { anyDiffers } from './differs.ts';
import { inTransaction, type Told, tell } from './tell-changes.ts';

/** A model's class, as its static methods see it. */
export type Class<M extends Model> = {
  new (): M;
  tableName: string;
  recordName: string;
  isAudited: boolean;
  jsonAttributes: string[] | undefined;
  query: typeof Model.query;
};

export type FetchOptions = { database: Database; lock?: boolean | 'shared' };
export type AddOptions = { database: Database; conflict?: string };
/** `by` changes the record: a caller, or the clock alone. */
export type ChangeOptions = AddOptions & { by: Author | Pick<Author, 'now'> };
/** Ids as records name others: some name none, and several the same. */
export type Ids = Iterable<string | null | undefined>;
type Owner = Readonly<Record<string, string>>;
type Change<M> = { owner: Owner; record: M & { id: string; version?: number }; changes: Partial<M> };
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
  const question = queryOf(model, database).where(owner).where('id', id);
  const held = lock === 'shared' ? question.forShare() : lock ? question.forUpdate() : question;
  const [record] = (await held) as M[];
  if (!record) throw notFound(model.recordName, id);
  return record;
}

export async function insertOne<M extends Model>(
  model: Class<M>,
  record: Record<string, unknown>,
  { database, conflict }: AddOptions,
): Promise<M> {
  const [added] = await inserted(model, [record], {
    database,
    conflict: conflict ?? `this ${model.recordName} exists already`,
  });
  return added!;
}

/** A statement has at most 65,535 parameters, and no record has a hundred columns. */
const ROWS_AT_ONCE = 500;

export async function insertAll<M extends Model>(
  model: Class<M>,
  records: readonly Record<string, unknown>[],
  { database, conflict }: AddOptions,
): Promise<M[]> {
  const options = { database, conflict: conflict ?? `one of these ${model.recordName}s exists already` };
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

/** Writes, and tells what was written, in one transaction. */
async function told<M extends Model>(
  model: Class<M>,
  database: Database,
  write: (database: Database) => Promise<Told<M>[]>,
): Promise<M[]> {
  const results = (changes: Told<M>[]) => changes.flatMap(({ after }) => after ?? []);
  if (!model.isAudited) return results(await write(database));
  return inTransaction(database, async (transaction) => {
    const changes = await write(transaction);
    const first = changes[0]?.after ?? changes[0]?.before;
    if (first) await tell(changes, { entity_type: entityType(model), ...ownerOf(model, first) }, transaction);
    return results(changes);
  });
}

/** `subscription_line_item` */
function entityType({ recordName }: { recordName: string }): string {
  return recordName.toLowerCase().replaceAll(' ', '_');
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
  return byId((await queryOf(model, database).where(owner).whereIn('id', wanted)) as M[]);
}

/** A record that counts its versions is changed from the version that was read, and from no other. */
export async function changeOne<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, record, changes }: Change<M>,
  options: ChangeOptions,
): Promise<M> {
  const { id, version } = record;
  const versioned = version === undefined ? {} : { version };
  const [changed] = await patch(model, { owner, records: [record], changes, ...versioned }, options);
  if (changed) return changed;
  const [same] = await queryOf(model, options.database)
    .where({ ...owner, ...versioned, id })
    .select('id');
  if (!same) throw new FarthingError('version_conflict', `${model.recordName} ${id} was changed in between`);
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

/** Postgres' word for a broken unique index as ours; anything else stays what it is. */
export function named(error: unknown, conflict: string): unknown {
  if (error instanceof FarthingError) return error;
  return failureOf(error) === 'conflict' ? alreadyExists(conflict) : error;
}
