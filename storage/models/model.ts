/**
 * The base of every table of a tenant and environment. A query starts with `in(scope)`, so that it is scoped by
 * construction and not by memory; `test/tidy.test.ts` refuses `.query(` outside this file.
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

/** A model's class, as its static methods see it. */
type Class<M extends Model> = {
  new (): M;
  tableName: string;
  recordName: string;
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

  /** The record with this id, or `not_found`. `lock` takes the row for the rest of the transaction. */
  static fetch<M extends ScopedModel>(this: Class<M>, scope: Scope, id: string, options: FetchOptions): Promise<M> {
    const { tenant_id, environment_id } = scope;
    return fetchOne(this, { tenant_id, environment_id }, id, options);
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
    const question = queryOf(this, options.database).where({ tenant_id, environment_id, id, status: 'published' });
    const [changed] = await patch(this, question, { changes, ...options });
    if (!changed) throw notFound(this.recordName, id);
    return changed;
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
}

type FetchOptions = { database: Database; lock?: boolean };
type AddOptions = { database: Database; conflict?: string };
/** `by` changes the record: a caller, or the clock alone. */
type ChangeOptions = AddOptions & { by: Author | Pick<Author, 'now'> };
/** Ids as records name others: some name none, and several the same. */
type Ids = Iterable<string | null | undefined>;
type Change<M> = { owner: Record<string, string>; record: M & { id: string; version?: number }; changes: Partial<M> };

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
  const [record] = (await (lock ? question.forUpdate() : question)) as M[];
  if (!record) throw notFound(model.recordName, id);
  return record;
}

async function insertOne<M extends Model>(
  model: Class<M>,
  record: Record<string, unknown>,
  { database, conflict }: AddOptions,
): Promise<M> {
  try {
    return (await queryOf(model, database)
      .insert(record as never)
      .returning('*')) as unknown as M;
  } catch (error) {
    throw named(error, conflict ?? `this ${model.recordName} exists already`);
  }
}

/** A statement has at most 65,535 parameters, and no record has a hundred columns. */
const ROWS_AT_ONCE = 500;

async function insertAll<M extends Model>(
  model: Class<M>,
  records: readonly Record<string, unknown>[],
  { database, conflict }: AddOptions,
): Promise<M[]> {
  const added: M[] = [];
  try {
    for (let from = 0; from < records.length; from += ROWS_AT_ONCE) {
      const rows = records.slice(from, from + ROWS_AT_ONCE);
      added.push(
        ...((await queryOf(model, database)
          .insert(rows as never)
          .returning('*')) as unknown as M[]),
      );
    }
    return added;
  } catch (error) {
    throw named(error, conflict ?? `one of these ${model.recordName}s exists already`);
  }
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
async function changeOne<M extends Model>(
  model: Class<M>,
  { owner, record, changes }: Change<M>,
  options: ChangeOptions,
): Promise<M> {
  const { id, version } = record;
  const question = queryOf(model, options.database).where(owner).where('id', id);
  const isVersioned = version !== undefined;
  const [changed] = await (isVersioned
    ? patch(model, question.where('version', version), { changes: { ...changes, version: version + 1 }, ...options })
    : patch(model, question, { changes, ...options }));
  if (!changed) throw new FarthingError('version_conflict', `${model.recordName} ${id} was changed in between`);
  return changed;
}

async function patch<M extends Model>(
  model: Class<M>,
  question: QueryBuilderType<M>,
  { changes, by, conflict }: ChangeOptions & { changes: Partial<M> },
): Promise<M[]> {
  try {
    return (await question.patch({ ...changes, ...changedBy(by) } as never).returning('*')) as unknown as M[];
  } catch (error) {
    throw named(error, conflict ?? `this ${model.recordName} exists already`);
  }
}

function changedBy(by: ChangeOptions['by']) {
  return 'user_id' in by ? updatedBy(by) : { updated_at: by.now.toISOString() };
}

/** Postgres' word for a broken unique index as ours; anything else stays what it is. */
export function named(error: unknown, conflict: string): unknown {
  if (error instanceof FarthingError) return error;
  return failureOf(error) === 'conflict' ? alreadyExists(conflict) : error;
}
