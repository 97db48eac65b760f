/**
 * After usage or a wallet movement, the alerts of the affected customers are checked within seconds (docs/rules/alerts.md, "When alerts are
 * checked"), and so are their wallets with automatic top-up (docs/rules/wallets.md, "Automatic top-up"). At most one check per customer is
 * queued until it begins; usage that arrives while it runs queues another. If a check is lost in a crash, the hourly sweep repeats it.
 */
import type { Knex } from 'knex';
import type { Scope } from '../../core/foundation/scope.ts';
import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import type { Database } from '../foundation/stores.ts';
import { hasGrants, IS_WALLET_WATCHED, listWatchedScopes } from '../queue/due-alerts.ts';
import { isSelfFilling } from '../queue/due-wallets.ts';

export const ALERT_TASK = 'check-alerts';

/** Delay of a check; all arrivals during it share the check. */
const CHECK_DELAY_SECONDS = 2;

type AlertArrival = Pick<BucketRow, 'tenant_id' | 'environment_id' | 'external_customer_id'>;

/** Returns the number of enqueued checks. An environment without alerts costs one query of a few indexes. */
export async function enqueueAlertChecks(database: Database, rows: readonly AlertArrival[]): Promise<number> {
  // Environments without alerts are excluded first: listing thousands of unwatched customers blocked the event loop for milliseconds.
  const watched = await listWatchedScopes(database, listScopesOfArrivals(rows), { or_fills: true });
  if (watched.size === 0) return 0;
  const arrived = new Map<string, AlertArrival>();
  for (const row of rows)
    if (watched.has(`${row.tenant_id} ${row.environment_id}`))
      arrived.set(JSON.stringify([row.tenant_id, row.environment_id, row.external_customer_id]), row);
  const column = (field: keyof AlertArrival) => Array.from(arrived.values(), (row) => row[field]);
  const { rows: enqueued } = await database.raw(ENQUEUE_SQL, [
    column('tenant_id'),
    column('environment_id'),
    column('external_customer_id'),
    ALERT_TASK,
    CHECK_DELAY_SECONDS,
  ]);
  return enqueued.length;
}

/**
 * Enqueues the check of one customer, which runs after the transaction commits. In an environment with its own clock, the check runs when
 * the clock advances. After an automatic top-up only alerts are checked (`fills` is false), under a separate key. Otherwise each top-up
 * would enqueue the next check for ever.
 */
export async function enqueueCustomerAlertCheck(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { customer_id, fills = true }: { readonly customer_id: string; readonly fills?: boolean },
): Promise<void> {
  const key = `${fills ? 'alerts' : 'alerts-alone'}:${customer_id}`;
  await addAlertCheck(database, { tenant_id, environment_id, customer_id, fills }, { key });
}

/** Enqueues a check. A queued check with the same `key` is not added again; null makes each check separate. */
async function addAlertCheck(
  database: Database,
  payload: Scope & ({ readonly customer_id: string; readonly fills: boolean } | { readonly wallets_behind: string }),
  { key, where = database.raw('true') }: { readonly key: string | null; readonly where?: Knex.Raw },
): Promise<void> {
  await database.raw(
    `select graphile_worker.add_job(?::text, payload := ?::json, max_attempts := 3, job_key := ?::text, job_key_mode := 'preserve_run_at')
      where not exists (select from test_clocks t where t.tenant_id = ? and t.environment_id = ?) and ?`,
    [ALERT_TASK, JSON.stringify(payload), key, payload.tenant_id, payload.environment_id, where],
  );
}

/**
 * Enqueues alert checks for subscriptions, and their children, whose new period has begun: spending restarts at zero, and usage since then
 * belongs to the new period. Only subscriptions with spending alerts are checked.
 */
export async function enqueuePeriodAlertChecks(
  database: Database,
  { tenant_id, environment_id }: Scope,
  subscription_ids: readonly string[],
): Promise<void> {
  if (subscription_ids.length === 0) return;
  await database.raw(
    `select graphile_worker.add_job(?,
              payload := json_build_object('tenant_id', w.tenant_id, 'environment_id', w.environment_id, 'customer_id', w.customer_id),
              max_attempts := 3, job_key := 'alerts:' || w.customer_id, job_key_mode := 'preserve_run_at')
       from (select distinct s.tenant_id, s.environment_id, s.customer_id
               from subscriptions s
               join alert_settings a on a.tenant_id = s.tenant_id and a.environment_id = s.environment_id
                and coalesce(a.parent_entity_id, a.entity_id) = s.id and a.status = 'published' and a.enabled
              where s.tenant_id = ? and s.environment_id = ? and (s.id = any(?) or s.parent_subscription_id = any(?))
                and not exists (select from test_clocks t where t.tenant_id = s.tenant_id and t.environment_id = s.environment_id)
              order by s.customer_id) as w`,
    [ALERT_TASK, tenant_id, environment_id, [...subscription_ids], [...subscription_ids]],
  );
}

type OwedInvoice = Scope & { readonly id: string; readonly customer_id: string };

/**
 * Enqueues an alert check after the amount due of an invoice has changed: this changes the real-time balance of its customer's wallets
 * without a credit movement. The job key contains the invoice's id, because the transaction holds the invoice's lock and not the
 * customer's. Only alerts are checked: a purchase by a top-up must not trigger the next one.
 */
export async function enqueueInvoiceAlertChecks(
  database: Database,
  { tenant_id, environment_id, id, customer_id }: OwedInvoice,
): Promise<void> {
  const isWatched = database.raw(
    `exists (select from wallets w where w.tenant_id = ? and w.environment_id = ? and w.customer_id = ? and ${IS_WALLET_WATCHED})`,
    [tenant_id, environment_id, customer_id],
  );
  const payload = { tenant_id, environment_id, customer_id, fills: false };
  await addAlertCheck(database, payload, { key: `alerts-invoice:${id}`, where: isWatched });
}

/**
 * Enqueues alert checks after the default thresholds of an environment have changed. A job checks some of the wallets without thresholds of
 * their own, and enqueues the next job. Each change restarts at the first wallet, because earlier jobs may have passed it.
 */
export async function enqueueDefaultAlertChecks(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { behind = '' }: { readonly behind?: string } = {},
): Promise<void> {
  await addAlertCheck(database, { tenant_id, environment_id, wallets_behind: behind }, { key: null });
}

function listScopesOfArrivals(rows: readonly AlertArrival[]): Scope[] {
  const scopes = new Map<string, Scope>();
  let last: Scope | undefined;
  for (const row of rows) {
    // Rows arrive grouped by environment.
    if (last?.tenant_id === row.tenant_id && last.environment_id === row.environment_id) continue;
    last = row;
    scopes.set(`${row.tenant_id} ${row.environment_id}`, row);
  }
  return [...scopes.values()];
}

/**
 * Finds the subscriptions that the usage affects: the customer's own, and the parent's for an inherited one. Enqueues checks for their
 * spending alerts, and for the wallets of the paying customers that have alerts or an automatic top-up.
 */
const ENQUEUE_SQL = `
  with arrived as (
    select tenant_id, environment_id, external_id
      from unnest(?::text[], ?::text[], ?::text[]) as row (tenant_id, environment_id, external_id)
  ), charged as (
    select tenant_id, environment_id, s.id, s.customer_id, coalesce(nullif(p.invoicing_customer_id, ''), p.customer_id) as payer_id,
           s.subscription_type
      from arrived
      join customers c using (tenant_id, environment_id, external_id)
      join subscriptions own using (tenant_id, environment_id)
      join subscriptions s using (tenant_id, environment_id)
      join subscriptions p using (tenant_id, environment_id)
     where c.status = 'published' and own.customer_id = c.id and own.status = 'published'
       and own.subscription_status in ('active', 'trialing')
       and s.id = case when own.subscription_type = 'INHERITED' then own.parent_subscription_id else own.id end
       and p.id = case when s.subscription_type = 'grouped_invoicing' then s.parent_subscription_id else s.id end
  ), watched as (
    select tenant_id, environment_id, customer_id from charged
     where exists (select from alert_settings a
                    where a.tenant_id = charged.tenant_id and a.environment_id = charged.environment_id
                      and coalesce(a.parent_entity_id, a.entity_id) = charged.id and a.status = 'published' and a.enabled)
        or ${hasGrants('charged')}
    union
    select tenant_id, environment_id, payer_id from charged
     where exists (select from wallets w
                    where w.tenant_id = charged.tenant_id and w.environment_id = charged.environment_id
                      and w.customer_id = charged.payer_id and ((${IS_WALLET_WATCHED}) or (${isSelfFilling('w')})))
    union
    -- A grouped customer pays for itself after the end of its parent (actions/lifecycle/wallets/invoiced-alone.ts has the time). Its check may find nothing.
    select tenant_id, environment_id, customer_id from charged
     where subscription_type = 'grouped_invoicing'
       and exists (select from wallets w
                    where w.tenant_id = charged.tenant_id and w.environment_id = charged.environment_id
                      and w.customer_id = charged.customer_id and ((${IS_WALLET_WATCHED}) or (${isSelfFilling('w')})))
  )
  select graphile_worker.add_job(?,
           payload := json_build_object('tenant_id', w.tenant_id, 'environment_id', w.environment_id, 'customer_id', w.customer_id),
           run_at := now() + ? * interval '1 second', max_attempts := 3,
           job_key := 'alerts:' || w.customer_id, job_key_mode := 'preserve_run_at')
    from watched w
   where not exists (select from test_clocks t
                      where t.tenant_id = w.tenant_id and t.environment_id = w.environment_id)
   -- Two slices that ask for the same ones ask in the same order, and neither holds what the other waits for.
   order by w.customer_id`;
