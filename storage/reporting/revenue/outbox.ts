/**
 * Table `revenue_outbox`: records whose revenue rows must be recomputed. A trigger writes it in the transaction of the change
 * (sql/postgres/0186-revenue-outbox.sql). A worker first takes entries, then a version, and then reads the records. So rows of a
 * greater version include all changes known to a smaller one, whichever worker is faster.
 */

import { groupBy } from '../../../core/foundation/group-by.ts';
import { type Scope, scopeKey } from '../../../core/foundation/scope.ts';
import type { Milliseconds } from '../../../core/foundation/time/instant.ts';
import type { Database } from '../../foundation/stores.ts';
import type { EnvironmentClock } from '../../models/schedule/environment-clock.ts';

export type RevenueChangeKind = 'invoice' | 'subscription' | 'customer';
export type RevenueChange = Scope & {
  readonly id: string;
  readonly kind: RevenueChangeKind;
  readonly entity_id: string;
};

/** Takes the oldest unlocked entries, and locks them until the transaction ends. */
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

/** Ensures that new rows supersede all existing ones: a restored store may have issued smaller versions. */
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

/** Enqueues these customers, so that all their rows are recomputed. */
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

export async function hasPendingRevenue(database: Database, scope: Scope): Promise<boolean> {
  return (await findFirstPendingTime(database, scope)) !== null;
}

type RevenueWriters = {
  readonly clock: Pick<EnvironmentClock, 'advanced_from_ms'> | null;
  /** Names of the jobs that set the instants of invoices and subscriptions. */
  readonly jobs: readonly string[];
};

/**
 * Finds the instant up to which revenue rows are complete if they are read from now on; null if there is no limit. A change that is not
 * committed yet is not in the outbox. It counts from the start of its transaction, or of the job that may have set its instant earlier.
 */
export async function findFirstMissingTime(
  database: Database,
  scope: Scope,
  { clock, jobs }: RevenueWriters,
): Promise<Milliseconds | null> {
  // Open transactions are read before the outbox, so that a change that commits in between is found in the outbox.
  const going = clock ? await firstByTheClock(database, scope, clock) : await firstGoingAt(database, jobs);
  const pending = await findFirstPendingTime(database, scope);
  return pending === null || going === null ? (pending ?? going) : Math.min(pending, going);
}

/** Returns the current instant of a frozen clock if an open transaction has changes, because these changes have that instant. */
async function firstByTheClock(
  database: Database,
  scope: Scope,
  { advanced_from_ms }: Pick<EnvironmentClock, 'advanced_from_ms'>,
): Promise<Milliseconds | null> {
  return (await isTelling(database, scope)) ? advanced_from_ms : null;
}

/**
 * Finds the start of the oldest open transaction, of any environment, that has locked rows of these tables or waits for such a lock. Also
 * considers the oldest running job that writes such changes in several transactions, all with the instant of the job's start.
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

/** Finds the instant of the oldest change in the outbox, which no revenue row contains yet. */
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

/** Whether an open transaction has changes of this environment. */
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
