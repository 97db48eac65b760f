/**
 * Table `late_usage`: ended subscriptions for whose time usage arrived or was corrected. A row is written after the bucket rows and before
 * the progress of the partition is raised, so that a crash loses nothing; a repeat has no effect. A subscription has one waiting row,
 * however much arrives. The biller takes the row first, so that later usage creates a new one
 * (actions/lifecycle/billing/bill-late-usage.ts).
 */
import { groupBy } from '../../core/foundation/group-by.ts';
import { type Scope, scopeKey } from '../../core/foundation/scope.ts';
import { HOUR_SECONDS } from '../../core/foundation/time/durations.ts';
import { formatUs, type Microseconds } from '../../core/foundation/time/instant.ts';
import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import type { Database } from '../foundation/stores.ts';

/**
 * Delay of the bill for late usage. All usage within this time is billed together: a customer that sends a backlog gets one invoice for it.
 */
export const BILL_DELAY_SECONDS = HOUR_SECONDS;

/** A customer has usage at this instant or later. */
export type LateArrival = Scope & { readonly external_customer_id: string; readonly at_us: Microseconds };

/** Records late usage. `now` is the time in environments without their own clock. */
export async function recordLateUsage(
  database: Database,
  arrivals: readonly LateArrival[],
  now: Microseconds,
): Promise<void> {
  const late = await withEnded(database, earliest(arrivals, scopeKey));
  const those = arrivals.filter((arrival) => late.has(scopeKey(arrival)));
  if (those.length === 0) return;
  const byCustomer = earliest(those, (one) => JSON.stringify([scopeKey(one), one.external_customer_id]));
  await database.raw(RECORD_SQL, [
    ...toColumns(byCustomer),
    byCustomer.map(({ external_customer_id }) => external_customer_id) as never,
    formatUs(now),
    BILL_DELAY_SECONDS,
  ]);
}

export function toArrivals(rows: readonly BucketRow[]): LateArrival[] {
  return rows.map(({ tenant_id, environment_id, external_customer_id, first_us, bucket_start_us }) => ({
    tenant_id,
    environment_id,
    external_customer_id,
    at_us: first_us ?? bucket_start_us,
  }));
}

function earliest(arrivals: readonly LateArrival[], keyOf: (one: LateArrival) => string): LateArrival[] {
  const groups = groupBy(arrivals, keyOf);
  return Array.from(groups.values(), (some) => some.reduce((a, b) => (b.at_us < a.at_us ? b : a)));
}

/** Finds the environments in which a subscription has ended after the earliest usage; usually none. */
async function withEnded(database: Database, arrivals: readonly LateArrival[]): Promise<Set<string>> {
  if (arrivals.length === 0) return new Set();
  const { rows } = await database.raw(
    `select tenant_id, environment_id from unnest(?::text[], ?::text[], ?::timestamptz[]) as arrived (tenant_id, environment_id, at)
      where exists (select from subscriptions s
                     where s.tenant_id = arrived.tenant_id and s.environment_id = arrived.environment_id
                       and s.status = 'published' and s.subscription_status = 'cancelled' and s.end_date > arrived.at)`,
    toColumns(arrivals),
  );
  return new Set(rows.map(scopeKey));
}

function toColumns(arrivals: readonly LateArrival[]) {
  return [
    arrivals.map(({ tenant_id }) => tenant_id) as never,
    arrivals.map(({ environment_id }) => environment_id) as never,
    arrivals.map(({ at_us }) => formatUs(at_us)) as never,
  ];
}

/**
 * SQL that records late usage. Usage of an inherited subscription is recorded for its parent. Rows are inserted in the order of ids, which
 * prevents deadlocks.
 */
const RECORD_SQL = `
  with arrived as (
    select * from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[]) as row (tenant_id, environment_id, at, external_id)
  )
  insert into late_usage (tenant_id, environment_id, subscription_id, due_at)
  select distinct on (ended.id) ended.tenant_id, ended.environment_id, ended.id,
         coalesce(t.frozen_time, ?::timestamptz) + ? * interval '1 second'
    from arrived
    join customers c using (tenant_id, environment_id, external_id)
    join subscriptions s on s.tenant_id = c.tenant_id and s.environment_id = c.environment_id and s.customer_id = c.id
    join subscriptions ended
      on ended.tenant_id = s.tenant_id and ended.environment_id = s.environment_id
         and ended.id = case when s.subscription_type = 'INHERITED' then s.parent_subscription_id else s.id end
    left join test_clocks t on t.tenant_id = s.tenant_id and t.environment_id = s.environment_id
   where s.status = 'published' and s.subscription_status = 'cancelled' and s.end_date > arrived.at
     and ended.status = 'published' and ended.subscription_status = 'cancelled' and ended.end_date > arrived.at
   order by ended.id
      on conflict (tenant_id, environment_id, subscription_id) where not is_taken do nothing`;

type OfOne = Scope & { readonly subscription_id: string };

/** Records late usage of a subscription that is known to have ended. */
export async function recordSubscriptionLateUsage(
  database: Database,
  { tenant_id, environment_id, subscription_id }: OfOne,
  due_at: Date,
): Promise<void> {
  await database.raw(
    `insert into late_usage (tenant_id, environment_id, subscription_id, due_at) values (?, ?, ?, ?)
         on conflict (tenant_id, environment_id, subscription_id) where not is_taken do nothing`,
    [tenant_id, environment_id, subscription_id, due_at],
  );
}

/** Takes the waiting rows; the caller commits before it reads the usage, so that later arrivals create new rows. */
export async function takeLateUsage(database: Database, { tenant_id, environment_id, subscription_id }: OfOne) {
  const { rows } = await database.raw(
    `update late_usage set is_taken = true where tenant_id = ? and environment_id = ? and subscription_id = ? returning id`,
    [tenant_id, environment_id, subscription_id],
  );
  return rows.map(({ id }: { id: string }) => id) as string[];
}

/** Finishes taken rows in the transaction that has billed them: deletes them, or makes them due again at `again_at`. */
export async function finishLateUsage(
  transaction: Database,
  { tenant_id, environment_id }: Scope,
  { ids, again_at }: { readonly ids: readonly string[]; readonly again_at: Date | null },
): Promise<void> {
  const mine = transaction('late_usage')
    .where({ tenant_id, environment_id })
    .whereRaw('id = any(?::bigint[])', [ids as never]);
  await (again_at === null ? mine.delete() : mine.update({ due_at: again_at }));
}
