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

export type RevenueChangeKind = 'invoice' | 'subscription' | 'customer';
export type RevenueChange = Scope & {
  readonly id: string;
  readonly kind: RevenueChangeKind;
  readonly entity_id: string;
};

/** The oldest that nobody else has taken; they are ours until the transaction ends. */
export async function takeRevenueChanges(transaction: Database, limit: number): Promise<RevenueChange[]> {
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

export async function deleteRevenueChanges(transaction: Database, pending: readonly RevenueChange[]): Promise<void> {
  for (const [first, ...others] of groupBy(pending, scopeKey).values())
    await transaction.raw(
      `delete from revenue_outbox where tenant_id = ? and environment_id = ? and id = any(?::bigint[])`,
      [first.tenant_id, first.environment_id, [first, ...others].map(({ id }) => id) as never],
    );
}

/** All that is of them is made anew. */
export async function enqueueCustomersRevenue(
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
export async function hasPendingRevenue(database: Database, scope: Scope): Promise<boolean> {
  return (await findFirstPendingTime(database, scope)) !== null;
}

type RevenueWriters = {
  readonly clock: Pick<EnvironmentClock, 'advanced_from_ms'> | null;
  /** The names of jobs that give invoices and subscriptions their instants. */
  readonly jobs: readonly string[];
};

/**
 * The instant of the environment before which all that was told is in the rows that are read from now on; null where all is. A change
 * that is being committed is none that has been told: as far as it is known, it is of the beginning of its transaction
 * (sql/postgres/0255-when-told.sql), or of the job that may have given it its instant before that.
 */
export async function findFirstMissingTime(
  database: Database,
  scope: Scope,
  { clock, jobs }: RevenueWriters,
): Promise<Milliseconds | null> {
  // First: what commits in between is told then.
  const going = clock ? await firstByTheClock(database, scope, clock) : await firstGoingAt(database, jobs);
  const pending = await findFirstPendingTime(database, scope);
  return pending === null || going === null ? (pending ?? going) : Math.min(pending, going);
}

/** What is written by a clock that stands is of where it stands, and that is not over. */
async function firstByTheClock(
  database: Database,
  scope: Scope,
  { advanced_from_ms }: Pick<EnvironmentClock, 'advanced_from_ms'>,
): Promise<Milliseconds | null> {
  return (await isTelling(database, scope)) ? advanced_from_ms : null;
}

/**
 * Since when the oldest transaction is open, of any environment, that is about to write what is told of, or has; or the oldest job runs that
 * does so in one transaction after the other, all at the instant at which it began. Who is about to write has locked rows of these tables, or waits for that.
 */
async function firstGoingAt(database: Database, jobs: readonly string[]): Promise<Milliseconds | null> {
  const { rows } = await database.raw(
    `select least(
       (select min(a.xact_start) from pg_locks l join pg_stat_activity a on a.pid = l.pid
         where l.locktype = 'relation' and l.mode in ('RowShareLock', 'RowExclusiveLock')
           and l.relation in ('invoices'::regclass, 'subscriptions'::regclass, 'subscription_line_items'::regclass)
           and l.database = (select oid from pg_database where datname = current_database())),
       (select min(locked_at) from graphile_worker.jobs where task_identifier = any(?::text[]))) as at`,
    [jobs as never],
  );
  return rows[0].at === null ? null : new Date(rows[0].at).getTime();
}

/** Since when the oldest is so that is in no row yet. */
async function findFirstPendingTime(
  database: Database,
  { tenant_id, environment_id }: Scope,
): Promise<Milliseconds | null> {
  const { rows } = await database.raw(
    `select min(happened_at) as at from revenue_outbox where tenant_id = ? and environment_id = ?`,
    [tenant_id, environment_id],
  );
  return rows[0].at === null ? null : new Date(rows[0].at).getTime();
}

/** Whether a transaction has told of this environment, and not ended. */
async function isTelling(database: Database, { tenant_id, environment_id }: Scope): Promise<boolean> {
  const { rows } = await database.raw(
    `select from pg_locks l
      where l.locktype = 'advisory' and l.classid = 25501 and l.objsubid = 2
        and l.objid = (hashtext(?)::bigint & 4294967295)::oid
        and l.database = (select oid from pg_database where datname = current_database())`,
    [`${tenant_id}/${environment_id}`],
  );
  return rows.length > 0;
}
