/**
 * Table `revenue_outbox`: whose revenue rows are to be made anew. Postgres itself writes it in the transaction of a change
 * (sql/postgres/0186-revenue-outbox.sql). Who makes rows takes what was told first, then a version, and reads last: so a greater version
 * was made of all that a smaller one was told of, whoever is quicker.
 */

import { groupBy } from '../../core/group-by.ts';
import { type Scope, scopeKey } from '../../core/scope.ts';
import type { Milliseconds } from '../../core/time/instant.ts';
import type { EnvironmentClock } from '../environment-clock.ts';
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
  return (await firstToldAt(database, scope)) !== null;
}

/**
 * The instant of the environment before which all that was told is in the rows that are read from now on; null where all is. A change
 * that is being committed is none that has been told: as far as it is known, it is of the beginning of its transaction
 * (sql/postgres/0255-when-told.sql).
 */
export async function firstMissingAt(
  database: Database,
  scope: Scope,
  clock: Pick<EnvironmentClock, 'advanced_from_ms'> | null,
): Promise<Milliseconds | null> {
  // First: what commits in between is told then.
  const begun = await firstTellingAt(database, scope);
  const told = await firstToldAt(database, scope);
  const telling = begun === null ? null : (clock?.advanced_from_ms ?? begun);
  return told === null || telling === null ? (told ?? telling) : Math.min(told, telling);
}

/** Since when the oldest is so that is in no row yet. */
async function firstToldAt(database: Database, { tenant_id, environment_id }: Scope): Promise<Milliseconds | null> {
  const { rows } = await database.raw(
    `select min(happened_at) as at from revenue_outbox where tenant_id = ? and environment_id = ?`,
    [tenant_id, environment_id],
  );
  return rows[0].at === null ? null : new Date(rows[0].at).getTime();
}

/** When the oldest transaction began that tells, and has not ended. */
async function firstTellingAt(database: Database, { tenant_id, environment_id }: Scope): Promise<Milliseconds | null> {
  const { rows } = await database.raw(
    `select min(a.xact_start) as at
       from pg_locks l join pg_stat_activity a on a.pid = l.pid
      where l.locktype = 'advisory' and l.classid = 25501 and l.objsubid = 2
        and l.objid = (hashtext(?)::bigint & 4294967295)::oid
        and l.database = (select oid from pg_database where datname = current_database())`,
    [`${tenant_id}/${environment_id}`],
  );
  return rows[0].at === null ? null : new Date(rows[0].at).getTime();
}
