/**
 * The base of every table of a tenant and environment. A query starts with `in(scope)`, so that it is scoped by
 * construction and not by memory; `test/tidy.test.ts` refuses `.query(` outside statements.ts. What is written through here is told
 * to the audit log in the same transaction (tell-changes.ts).
 */
import { Model, QueryBuilder, type QueryBuilderType, raw } from 'objection';
import type { z } from 'zod';
import type { Scope } from '../../core/scope.ts';
import type { Database } from '../stores.ts';
import { updateEach, updateOne } from './change-statements.ts';
import { listJsonFields } from './json-fields.ts';
import { runInTransaction } from './record-changes.ts';
import {
  type AddOptions,
  appendAll,
  appendOne,
  buildQuery,
  type ChangeOptions,
  type Class,
  type FetchOptions,
  fetchById,
  fetchList,
  fetchOne,
  type Ids,
  insertAll,
  insertOne,
  type ListByValueQuery,
  patch,
  removeOne,
} from './statements.ts';

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
    return this.record ? listJsonFields(this.record) : [];
  }
  static override useLimitInFirst = true;

  /** Every query of this table that sees only this tenant and environment. */
  static in<M extends ScopedModel>(this: Class<M>, scope: Scope, database: Database): QueryBuilderType<M> {
    return buildQuery(this, database)
      .where(`${this.tableName}.tenant_id`, scope.tenant_id)
      .where(`${this.tableName}.environment_id`, scope.environment_id) as QueryBuilderType<M>;
  }

  /** The record with this id, or `not_found`. `lock` takes the row for the rest of the transaction, `shared` with others. */
  static fetch<M extends ScopedModel>(this: Class<M>, scope: Scope, id: string, options: FetchOptions): Promise<M> {
    const { tenant_id, environment_id } = scope;
    return fetchOne(this, { tenant_id, environment_id }, id, options);
  }

  /** The same of one that is published, or `not_found`. */
  static fetchPublished<M extends ScopedModel & { status: string }>(
    this: Class<M>,
    scope: Scope,
    id: string,
    options: FetchOptions,
  ): Promise<M> {
    const { tenant_id, environment_id } = scope;
    return fetchOne(this, { tenant_id, environment_id, status: 'published' }, id, options);
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

  /** Inserts a record of this scope that nobody needs back, of a table that is not audited. */
  static append<M extends ScopedModel>(
    this: Class<M> & { isAudited: false },
    scope: Scope,
    record: Record<string, unknown>,
    options: Pick<AddOptions, 'database'>,
  ): Promise<void> {
    const { tenant_id, environment_id } = scope;
    return appendOne(this, { ...record, tenant_id, environment_id }, options);
  }

  /** The same of several. */
  static appendAll<M extends ScopedModel>(
    this: Class<M> & { isAudited: false },
    { tenant_id, environment_id }: Scope,
    records: readonly Record<string, unknown>[],
    options: Pick<AddOptions, 'database'>,
  ): Promise<void> {
    return appendAll(
      this,
      records.map((record) => ({ ...record, tenant_id, environment_id })),
      options,
    );
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

  /** Every record whose column has this value; of several who ask side by side in one statement (side-by-side.ts). */
  static listBy<M extends ScopedModel>(
    this: Class<M>,
    { tenant_id, environment_id }: Scope,
    query: Omit<ListByValueQuery, 'where' | 'order' | 'database'> & Partial<Pick<ListByValueQuery, 'where' | 'order'>>,
    database: Database,
  ): Promise<M[]> {
    return fetchList(this, { tenant_id, environment_id }, { where: {}, order: ['id'], ...query, database });
  }

  /** Writes changes to a record that this transaction holds, and answers it as it is then: itself, if nothing changes. */
  static change<M extends ScopedModel>(
    this: Class<M>,
    record: M,
    changes: Partial<NoInfer<M>>,
    options: ChangeOptions,
  ): Promise<M> {
    const { tenant_id, environment_id } = record;
    return updateOne(this, { owner: { tenant_id, environment_id }, record, changes }, options);
  }

  /** Writes to each of these records, which this transaction holds, changes of its own, and answers all of them as they are then. */
  static changeEach<M extends ScopedModel>(
    this: Class<M>,
    { tenant_id, environment_id }: Scope,
    each: readonly { readonly record: M; readonly changes: Partial<NoInfer<M>> }[],
    options: ChangeOptions,
  ): Promise<M[]> {
    return updateEach(this, { owner: { tenant_id, environment_id }, each }, options);
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
    return runInTransaction(options.database, async (transaction) => {
      const record = await fetchOne(this, { ...owner, status: 'published' }, id, { database: transaction, lock: true });
      const [changed] = await patch(this, { owner, records: [record], changes }, { ...options, database: transaction });
      return changed ?? record;
    });
  }

  /** Takes the record away for good, for the few that are not archived. */
  static remove<M extends ScopedModel>(this: Class<M>, record: M, options: ChangeOptions): Promise<void> {
    const { tenant_id, environment_id } = record;
    return removeOne(this, { owner: { tenant_id, environment_id }, record }, options);
  }

  /** Writes the same changes to all of these records, which this transaction holds, and answers those that changed. */
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
  /** Which of its columns have fixed words, for the conditions of lists. */
  static record?: z.ZodObject;
  static tenantColumn = 'tenant_id';
  static override useLimitInFirst = true;

  /** Every query of this table that sees only this tenant. */
  static ofTenant<M extends TenantWideModel>(
    this: Class<M> & { tenantColumn: string },
    tenant_id: string,
    database: Database,
  ): QueryBuilderType<M> {
    return buildQuery(this, database).where(`${this.tableName}.${this.tenantColumn}`, tenant_id) as QueryBuilderType<M>;
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
    return updateOne(this, { owner: { [this.tenantColumn]: tenant_id }, record, changes }, options);
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
