/**
 * Base class of all tables with a tenant and an environment. Every query starts with `in(scope)`; `test/tidy.test.ts`
 * refuses `.query(` outside statements.ts. Changes through this class are audited in the same transaction
 * (record-changes.ts).
 */
import { Model, QueryBuilder, type QueryBuilderType, raw } from 'objection';
import type { z } from 'zod';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { updateEach, updateOne } from './change-statements.ts';
import { appendAll, appendOne, insertAll, insertOne } from './insert-statements.ts';
import { listJsonFields } from './json-fields.ts';
import { runInTransaction } from './record-changes.ts';
import {
  type AddOptions,
  buildQuery,
  type ChangeOptions,
  type Class,
  type FetchOptions,
  fetchById,
  fetchChangeable,
  fetchList,
  fetchOne,
  type Ids,
  type ListByValueQuery,
  patch,
  removeOne,
} from './statements.ts';

/** Methods of QueryBuilder that are overridden below. Its full type is too deep for TypeScript to extend. */
type Builder = { where(condition: unknown): unknown; whereIn(column: unknown, values: unknown): unknown };
const AnyBuilder = QueryBuilder as unknown as new (model: unknown) => Builder;

/**
 * Passes a list as one parameter, because a statement of Postgres has at most 65,535 parameters. A list of one value is compared by `=`:
 * Postgres plans a prepared statement with a list of unknown length each time.
 */
class ListInOne extends AnyBuilder {
  override whereIn(column: unknown, values: unknown): unknown {
    if (typeof column !== 'string' || !Array.isArray(values)) return super.whereIn(column, values);
    if (values.length === 1) return this.where(raw('?? = ?', [column, values[0]] as never));
    return this.where(raw('?? = any(?)', [column, values] as never));
  }
}

export abstract class ScopedModel extends Model {
  static override QueryBuilder = ListInOne as unknown as typeof QueryBuilder;
  declare id: string;
  declare tenant_id: string;
  declare environment_id: string;
  /** Name of a record of this table in messages and audit entries, e.g. `meter`. */
  static recordName = 'record';
  /** False if the audit entry of another record covers the changes, or if users do not change the record. */
  static isAudited = true;
  /** Shape of a record; determines which columns are JSON. */
  static record?: z.ZodObject;
  static override get jsonAttributes() {
    return this.record ? listJsonFields(this.record) : [];
  }
  static override useLimitInFirst = true;

  /** Starts every query of this table in this tenant and environment. */
  static in<M extends ScopedModel>(this: Class<M>, scope: Scope, database: Database): QueryBuilderType<M> {
    return buildQuery(this, database)
      .where(`${this.tableName}.tenant_id`, scope.tenant_id)
      .where(`${this.tableName}.environment_id`, scope.environment_id) as QueryBuilderType<M>;
  }

  /**
   * Loads the record with this id, or throws `not_found`. `lock` locks the row until the end of the transaction;
   * `shared` permits other shared locks.
   */
  static fetch<M extends ScopedModel>(this: Class<M>, scope: Scope, id: string, options: FetchOptions): Promise<M> {
    const { tenant_id, environment_id } = scope;
    return fetchOne(this, { tenant_id, environment_id }, id, options);
  }

  /** Loads the published record with this id, or throws `not_found`. */
  static fetchPublished<M extends ScopedModel & { status: string }>(
    this: Class<M>,
    scope: Scope,
    id: string,
    options: FetchOptions,
  ): Promise<M> {
    const { tenant_id, environment_id } = scope;
    return fetchOne(this, { tenant_id, environment_id, status: 'published' }, id, options);
  }

  /** Loads and locks the published record with this id for a change. */
  static fetchChangeable<M extends ScopedModel & { status: string }>(
    this: Class<M>,
    { tenant_id, environment_id }: Scope,
    id: string,
    database: Database,
  ): Promise<M> {
    return fetchChangeable(this, { tenant_id, environment_id }, id, database);
  }

  /** Inserts a record of this scope. A unique violation becomes `already_exists` with the message `conflict`. */
  static add<M extends ScopedModel>(
    this: Class<M>,
    scope: Scope,
    record: Record<string, unknown>,
    options: AddOptions,
  ): Promise<M> {
    const { tenant_id, environment_id } = scope;
    return insertOne(this, { ...record, tenant_id, environment_id }, options);
  }

  /** Inserts a record of this scope without reading it back, into a table that is not audited. */
  static append<M extends ScopedModel>(
    this: Class<M> & { isAudited: false },
    scope: Scope,
    record: Record<string, unknown>,
    options: Pick<AddOptions, 'database'>,
  ): Promise<void> {
    const { tenant_id, environment_id } = scope;
    return appendOne(this, { ...record, tenant_id, environment_id }, options);
  }

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

  /** Inserts records of this scope in their order; atomic if the caller has a transaction open. */
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

  /** Loads records by id; ids outside this scope are absent. */
  static byId<M extends ScopedModel>(
    this: Class<M>,
    scope: Scope,
    ids: Ids,
    database: Database,
  ): Promise<Map<string, M>> {
    const { tenant_id, environment_id } = scope;
    return fetchById(this, { tenant_id, environment_id }, { ids, database });
  }

  /**
   * Lists the records whose column has this value. In a batched transaction, concurrent calls run as one statement
   * (concurrency/batched.ts).
   */
  static listBy<M extends ScopedModel>(
    this: Class<M>,
    { tenant_id, environment_id }: Scope,
    query: Omit<ListByValueQuery, 'where' | 'order' | 'database'> & Partial<Pick<ListByValueQuery, 'where' | 'order'>>,
    database: Database,
  ): Promise<M[]> {
    return fetchList(this, { tenant_id, environment_id }, { where: {}, order: ['id'], ...query, database });
  }

  /** Changes a record that this transaction has locked. Returns the changed record, or the record itself if nothing changes. */
  static change<M extends ScopedModel>(
    this: Class<M>,
    record: M,
    changes: Partial<NoInfer<M>>,
    options: ChangeOptions,
  ): Promise<M> {
    const { tenant_id, environment_id } = record;
    return updateOne(this, { owner: { tenant_id, environment_id }, record, changes }, options);
  }

  /** Changes each of these records, which this transaction has locked, to its own values, and returns all of them. */
  static changeEach<M extends ScopedModel>(
    this: Class<M>,
    { tenant_id, environment_id }: Scope,
    each: readonly { readonly record: M; readonly changes: Partial<NoInfer<M>> }[],
    options: ChangeOptions,
  ): Promise<M[]> {
    return updateEach(this, { owner: { tenant_id, environment_id }, each }, options);
  }

  /** Changes or archives the published record with this id. To archive an archived one is `not_found`. */
  static async changePublished<M extends ScopedModel & { status: string }>(
    this: Class<M>,
    scope: Scope,
    { id, changes }: { id: string; changes: Partial<NoInfer<M>> },
    options: ChangeOptions,
  ): Promise<M> {
    const { tenant_id, environment_id } = scope;
    const owner = { tenant_id, environment_id };
    return runInTransaction(options.database, async (transaction) => {
      const record = await (changes.status === undefined
        ? fetchChangeable(this, owner, id, transaction)
        : fetchOne(this, { ...owner, status: 'published' }, id, { database: transaction, lock: true }));
      const [changed] = await patch(this, { owner, records: [record], changes }, { ...options, database: transaction });
      return changed ?? record;
    });
  }

  /** Deletes the record permanently, for the few kinds that are not archived. */
  static remove<M extends ScopedModel>(this: Class<M>, record: M, options: ChangeOptions): Promise<void> {
    const { tenant_id, environment_id } = record;
    return removeOne(this, { owner: { tenant_id, environment_id }, record }, options);
  }

  /** Makes equal changes to all of these records, which this transaction has locked, and returns those that changed. */
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

/** Base of the few tables whose rows belong to no environment: tenants, environments, users. */
export abstract class TenantWideModel extends Model {
  static override QueryBuilder = ListInOne as unknown as typeof QueryBuilder;
  declare id: string;
  declare status: string;
  declare created_at: string;
  declare updated_at: string;
  static recordName = 'record';
  static isAudited = true;
  /** Shape that names the columns with enum values, for the conditions of lists. */
  static record?: z.ZodObject;
  static tenantColumn = 'tenant_id';
  static override useLimitInFirst = true;

  /** Starts every query of this table in this tenant. */
  static ofTenant<M extends TenantWideModel>(
    this: Class<M> & { tenantColumn: string },
    tenant_id: string,
    database: Database,
  ): QueryBuilderType<M> {
    return buildQuery(this, database).where(`${this.tableName}.${this.tenantColumn}`, tenant_id) as QueryBuilderType<M>;
  }

  /** Loads the tenant's record with this id, or throws `not_found`. */
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
