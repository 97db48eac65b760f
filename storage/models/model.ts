/**
 * The base of every table of a tenant and environment. A query starts with `in(scope)`, so that it is scoped by
 * construction and not by memory; `test/tidy.test.ts` refuses `.query(` outside this file. What is written through here is told
 * to the audit log in the same transaction (tell-changes.ts).
 */
import { Model, QueryBuilder, type QueryBuilderType, raw } from 'objection';
import type { z } from 'zod';
import { byId } from '../../core/by-id.ts';
import { alreadyExists, FarthingError, notFound } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author, updatedBy } from '../../core/stamp.ts';
import { failureOf } from '../failure.ts';
import type { Database } from '../stores.ts';
import { jsonFieldsOf } from './json-fields.ts';
import { inTransaction, type Told, tell } from './tell-changes.ts';

/** A model's class, as its static methods see it. */
type Class<M extends Model> = {
  new (): M;
  tableName: string;
  recordName: string;
  isAudited: boolean;
  query: typeof Model.query;
};

/** As much of a query as is changed below: the whole of its type is too deep to be inherited from. */
type Builder = { where(condition: unknown): unknown; whereIn(column: unknown, values: unknown): unknown };
const AnyBuilder = QueryBuilder as unknown as new (model: unknown) => Builder;

/** A list is one parameter of the statement, however long it is: Postgres takes at most 65,535 of them. */
class ListInOne extends AnyBuilder {
  override whereIn(column: unknown, values: unknown): unknown {
    if (typeof column !== 'string' || !Array.isArray(values)) return super.whereIn(column, values);
    return this.where(raw('?? = any(?)', [column, values] as never));
  }
}

export abstract class ScopedModel extends Model {
  static override QueryBuilder = ListInOne as unknown as typeof QueryBuilder;
  declare id: string;
  declare tenant_id: string;
  declare environment_id: string;
  /** What a record of this table is called in messages: `meter`. */
  static recordName = 'record';
  /** False for what is told with another record, or is no record that anybody changes. */
  static isAudited = true;
  /** The shape of a record, which says what is kept as JSON. */
  static record?: z.ZodObject;
  static override get jsonAttributes() {
    return this.record ? jsonFieldsOf(this.record) : [];
  }
  static override useLimitInFirst = true;

  /** Every query of this table that sees only this tenant and environment. */
  static in<M extends ScopedModel>(this: Class<M>, scope: Scope, database: Database): QueryBuilderType<M> {
    return queryOf(this, database)
      .where(`${this.tableName}.tenant_id`, scope.tenant_id)
      .where(`${this.tableName}.environment_id`, scope.environment_id) as QueryBuilderType<M>;
  }

  /** The record with this id, or `not_found`. `lock` takes the row for the rest of the transaction, `shared` with others. */
  static fetch<M extends ScopedModel>(this: Class<M>, scope: Scope, id: string, options: FetchOptions): Promise<M> {
    const { tenant_id, environment_id } = scope;
    return fetchOne(this, { tenant_id, environment_id }, id, options);
  }

  /** The same of one that is published, or `not_found`. */
  static async fetchPublished<M extends ScopedModel & { status: string }>(
    this: Class<M>,
    scope: Scope,
    id: string,
    options: FetchOptions,
  ): Promise<M> {
    const { tenant_id, environment_id } = scope;
    const record = await fetchOne(this, { tenant_id, environment_id }, id, options);
    if (record.status !== 'published') throw notFound(this.recordName, id);
    return record;
  }

  /** Inserts a record of this scope; a broken unique index becomes `already_exists` with `conflict` as its message. */
  static add<M extends ScopedModel>(
    this: Class<M>,
    scope: Scope,
    record: Record<string, unknown>,
    options: AddOptions,
  ): Promise<M> {
    const { tenant_id, environment_id } = scope;
    return insertOne(this, { ...record, tenant_id, environment_id }, options);
  }

  /** Inserts records of this scope, in their order; all or none when the caller has a transaction open. */
  static addAll<M extends ScopedModel>(
    this: Class<M>,
    scope: Scope,
    records: readonly Record<string, unknown>[],
    options: AddOptions,
  ): Promise<M[]> {
    const { tenant_id, environment_id } = scope;
    const rows = records.map((record) => ({ ...record, tenant_id, environment_id }));
    return insertAll(this, rows, options);
  }

  /** The records with these ids, by their id; what is not in this scope is not among them. */
  static byId<M extends ScopedModel>(
    this: Class<M>,
    scope: Scope,
    ids: Ids,
    database: Database,
  ): Promise<Map<string, M>> {
    const { tenant_id, environment_id } = scope;
    return fetchById(this, { tenant_id, environment_id }, { ids, database });
  }

  /** Writes changes to a record that this transaction holds, and answers it as it is then. */
  static change<M extends ScopedModel>(
    this: Class<M>,
    record: M,
    changes: Partial<NoInfer<M>>,
    options: ChangeOptions,
  ): Promise<M> {
    const { tenant_id, environment_id } = record;
    return changeOne(this, { owner: { tenant_id, environment_id }, record, changes }, options);
  }

  /** Writes changes to the published record with this id, in one statement, or `not_found`. */
  static async changePublished<M extends ScopedModel>(
    this: Class<M>,
    scope: Scope,
    { id, changes }: { id: string; changes: Partial<NoInfer<M>> },
    options: ChangeOptions,
  ): Promise<M> {
    const { tenant_id, environment_id } = scope;
    const owner = { tenant_id, environment_id };
    return inTransaction(options.database, async (transaction) => {
      const [record] = (await queryOf(this, transaction)
        .where({ ...owner, id, status: 'published' })
        .forUpdate()) as M[];
      if (!record) throw notFound(this.recordName, id);
      const [changed] = await patch(this, { owner, records: [record], changes }, { ...options, database: transaction });
      return changed!;
    });
  }

  /** Takes the record away for good, for the few that are not archived. */
  static remove<M extends ScopedModel>(this: Class<M>, record: M, options: ChangeOptions): Promise<void> {
    const { tenant_id, environment_id } = record;
    return removeOne(this, { owner: { tenant_id, environment_id }, record }, options);
  }

  /** Writes the same changes to all of these records, which this transaction holds. */
  static changeAll<M extends ScopedModel>(
    this: Class<M>,
    scope: Scope,
    { records, changes }: { records: readonly M[]; changes: Partial<NoInfer<M>> },
    options: ChangeOptions,
  ): Promise<M[]> {
    const { tenant_id, environment_id } = scope;
    return patch(this, { owner: { tenant_id, environment_id }, records, changes }, options);
  }
}

/** The base of the few tables that lie above the environments: tenants, environments, users. */
export abstract class TenantWideModel extends Model {
  static override QueryBuilder = ListInOne as unknown as typeof QueryBuilder;
  declare id: string;
  declare status: string;
  declare created_at: string;
  declare updated_at: string;
  static recordName = 'record';
  static isAudited = true;
  static tenantColumn = 'tenant_id';
  static override useLimitInFirst = true;

  /** Every query of this table that sees only this tenant. */
  static ofTenant<M extends TenantWideModel>(
    this: Class<M> & { tenantColumn: string },
    tenant_id: string,
    database: Database,
  ): QueryBuilderType<M> {
    return queryOf(this, database).where(`${this.tableName}.${this.tenantColumn}`, tenant_id) as QueryBuilderType<M>;
  }

  /** The tenant's record with this id, or `not_found`. */
  static fetch<M extends TenantWideModel>(
    this: Class<M> & { tenantColumn: string },
    tenant_id: string,
    id: string,
    options: FetchOptions,
  ): Promise<M> {
    return fetchOne(this, { [this.tenantColumn]: tenant_id }, id, options);
  }

  static add<M extends TenantWideModel>(
    this: Class<M>,
    record: Record<string, unknown>,
    options: AddOptions,
  ): Promise<M> {
    return insertOne(this, record, options);
  }

  static byId<M extends TenantWideModel>(
    this: Class<M> & { tenantColumn: string },
    tenant_id: string,
    ids: Ids,
    database: Database,
  ): Promise<Map<string, M>> {
    return fetchById(this, { [this.tenantColumn]: tenant_id }, { ids, database });
  }

  static change<M extends TenantWideModel>(
    this: Class<M> & { tenantColumn: string },
    record: M,
    changes: Partial<NoInfer<M>>,
    options: ChangeOptions,
  ): Promise<M> {
    const tenant_id = record[this.tenantColumn as keyof M] as string;
    return changeOne(this, { owner: { [this.tenantColumn]: tenant_id }, record, changes }, options);
  }

  static remove<M extends TenantWideModel>(
    this: Class<M> & { tenantColumn: string },
    record: M,
    options: ChangeOptions,
  ): Promise<void> {
    const tenant_id = record[this.tenantColumn as keyof M] as string;
    return removeOne(this, { owner: { [this.tenantColumn]: tenant_id }, record }, options);
  }
}

type FetchOptions = { database: Database; lock?: boolean | 'shared' };
type AddOptions = { database: Database; conflict?: string };
/** `by` changes the record: a caller, or the clock alone. */
type ChangeOptions = AddOptions & { by: Author | Pick<Author, 'now'> };
/** Ids as records name others: some name none, and several the same. */
type Ids = Iterable<string | null | undefined>;
type Owner = Readonly<Record<string, string>>;
type Change<M> = { owner: Owner; record: M & { id: string; version?: number }; changes: Partial<M> };
type Changes<M> = { owner: Owner; records: readonly M[]; changes: Partial<M>; version?: number };

function queryOf<M extends Model>(model: Class<M>, database: Database) {
  return model.query(database) as QueryBuilderType<M>;
}

async function fetchOne<M extends Model>(
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

async function insertOne<M extends Model>(
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

async function insertAll<M extends Model>(
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

async function fetchById<M extends Model & { id: string }>(
  model: Class<M>,
  owner: Record<string, string>,
  { ids, database }: { ids: Ids; database: Database },
): Promise<Map<string, M>> {
  const wanted = [...new Set(ids)].filter((id): id is string => Boolean(id));
  if (wanted.length === 0) return new Map();
  return byId((await queryOf(model, database).where(owner).whereIn('id', wanted)) as M[]);
}

/** A record that counts its versions is changed from the version that was read, and from no other. */
async function changeOne<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, record, changes }: Change<M>,
  options: ChangeOptions,
): Promise<M> {
  const { id, version } = record;
  const versioned = version === undefined ? changes : { ...changes, version: version + 1 };
  const [changed] = await patch(
    model,
    { owner, records: [record], changes: versioned, ...(version === undefined ? {} : { version }) },
    options,
  );
  if (!changed) throw new FarthingError('version_conflict', `${model.recordName} ${id} was changed in between`);
  return changed;
}

function patch<M extends Model & { id: string }>(
  model: Class<M>,
  { owner, records, changes, version }: Changes<M>,
  { by, conflict, database }: ChangeOptions,
): Promise<M[]> {
  const before = byId(records);
  return told(model, database, async (transaction) => {
    const those = queryOf(model, transaction)
      .where(owner)
      .whereIn('id', [...before.keys()]);
    const question = version === undefined ? those : those.where('version', version);
    try {
      const changed = await question.patch({ ...changes, ...changedBy(by) } as never).returning('*');
      return (changed as unknown as M[]).map((after) => ({ before: before.get(after.id)!, after }));
    } catch (error) {
      throw named(error, conflict ?? `this ${model.recordName} exists already`);
    }
  });
}

/** Takes a record away for good: what is archived stays, and is changed. */
async function removeOne<M extends Model & { id: string }>(
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
