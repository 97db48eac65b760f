/**
 * Table `revenue_outbox`: whose revenue rows are to be made anew. Postgres itself writes it in the transaction of a change
 * (sql/postgres/0186-revenue-outbox.sql). Who makes rows takes what was told first, then a version, and reads last: so a greater version
 * was made of all that a smaller one was told of, whoever is quicker.
 */

import { groupBy } from '../../core/group-by.ts';
import { type Scope, scopeKey } from '../../core/scope.ts';
import type { Database } from '../stores.ts';

export type ToldKind = 'invoice' | 'subscription' | 'customer';
export type ToldRevenue = Scope & { readonly id: string; readonly kind: ToldKind; readonly entity_id: string };

/** The oldest that nobody else has taken; they are ours until the transaction ends. */
export async function takeToldRevenue(transaction: Database, limit: number): Promise<ToldRevenue[]> {
  const { rows } = await transaction.raw(
    `select id, tenant_id, environment_id, kind, entity_id from revenue_outbox order by id limit ? for update skip locked`,
    [limit],
  );
  return rows;
}

export async function nextRevenueVersion(transaction: Database): Promise<string> {
  const { rows } = await transaction.raw(`select nextval('revenue_versions')::text as version`);
  return rows[0].version;
}

/** So that rows which are made from now on win over all that are there: a store that was restored may have given smaller numbers. */
export async function raiseRevenueVersion(database: Database, version: string): Promise<void> {
  await database.raw(`select setval('revenue_versions', greatest(last_value, ?::bigint)) from revenue_versions`, [
    version,
  ]);
}

export async function removeToldRevenue(transaction: Database, told: readonly ToldRevenue[]): Promise<void> {
  for (const [first, ...others] of groupBy(told, scopeKey).values())
    await transaction.raw(
      `delete from revenue_outbox where tenant_id = ? and environment_id = ? and id = any(?::bigint[])`,
      [first.tenant_id, first.environment_id, [first, ...others].map(({ id }) => id) as never],
    );
}

/** All that is of them is made anew. */
export async function tellCustomers(
  database: Database,
  { tenant_id, environment_id }: Scope,
  customer_ids: readonly string[],
): Promise<void> {
  await database.raw(
    `insert into revenue_outbox (tenant_id, environment_id, kind, entity_id)
     select ?, ?, 'customer', id from unnest(?::text[]) as told (id)`,
    [tenant_id, environment_id, customer_ids as never],
  );
}

/** Whether anything of an environment waits. */
export async function isRevenueTold(database: Database, scope: Scope): Promise<boolean> {
  return (await oldestTold(database, scope)) !== null;
}

/** When the oldest change was told that is in no row yet; null where all are. */
export async function oldestTold(database: Database, scope: Scope): Promise<number | null> {
  const { rows } = await database.raw(
    `select min(told_at) as told_at from revenue_outbox where tenant_id = ? and environment_id = ?`,
    [scope.tenant_id, scope.environment_id],
  );
  return rows[0].told_at === null ? null : new Date(rows[0].told_at).getTime();
}
