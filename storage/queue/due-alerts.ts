/**
 * Customers whose alerts the scheduler checks: those for whom any alert can fire (docs/rules/alerts.md, "When alerts
 * are checked").
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../foundation/stores.ts';
import { type DueQuery, type DueRecord, type Instant, listRoundRobin, narrowToEnvironments } from './due-billing.ts';
import { isSelfFilling } from './due-wallets.ts';

/**
 * SQL condition that alerts watch the active wallet `w`: by its own settings, by a feature, or, without own settings,
 * by the setting of its environment.
 */
export const IS_WALLET_WATCHED = `
  w.wallet_status = 'active' and w.status = 'published'
  and ((w.alert_settings ->> 'alert_enabled') = 'true'
    or exists (select from features f
                where f.tenant_id = w.tenant_id and f.environment_id = w.environment_id
                  and f.status = 'published' and (f.alert_settings ->> 'alert_enabled') = 'true')
    or w.alert_settings is null and exists (
         select from settings g
          where g.tenant_id = w.tenant_id and g.environment_id = w.environment_id
            and g.key = 'wallet_balance_alert_config' and g.status = 'published'
            and (g.value ->> 'alert_enabled') = 'true'))`;

/** Whether the subscription in `row` has entitlement grants with a quota. */
export const hasGrants = (row: string) => `exists (
  select from subscriptions granted join entitlements grants using (tenant_id, environment_id)
   where granted.tenant_id = ${row}.tenant_id and granted.environment_id = ${row}.environment_id and granted.id = ${row}.id
     and granted.subscription_type <> 'INHERITED'
     and grants.status = 'published' and grants.grant_quota is not null
     and (grants.entity_id in (granted.id, granted.plan_id)
       or exists (select from addon_associations a where a.tenant_id = granted.tenant_id and a.environment_id = granted.environment_id
                     and a.entity_id = granted.id and a.addon_id = grants.entity_id)))`;

const WATCHED = `(
  exists (select from subscriptions s
           where s.tenant_id = customers.tenant_id and s.environment_id = customers.environment_id and s.customer_id = customers.id
             and s.status = 'published' and s.subscription_status in ('active', 'trialing') and ${hasGrants('s')})
  or
  exists (select from subscriptions s join alert_settings a on a.tenant_id = s.tenant_id and a.environment_id = s.environment_id
           where s.tenant_id = customers.tenant_id and s.environment_id = customers.environment_id and s.customer_id = customers.id
             and coalesce(a.parent_entity_id, a.entity_id) = s.id and a.status = 'published' and a.enabled
             and s.status = 'published' and s.subscription_status in ('active', 'trialing'))
  or exists (select from wallets w
              where w.tenant_id = customers.tenant_id and w.environment_id = customers.environment_id
                and w.customer_id = customers.id
                and ${IS_WALLET_WATCHED}))`;

/** SQL condition that any alert can fire in an environment: on grants, on spending, or on wallet balances. */
const IS_WATCHED = `
  exists (select from entitlements g where g.tenant_id = e.tenant_id and g.environment_id = e.environment_id
             and g.status = 'published' and g.grant_quota is not null)
  or  exists (select from alert_settings a where a.tenant_id = e.tenant_id and a.environment_id = e.environment_id
             and a.status = 'published' and a.enabled)
  or exists (select from wallets w where w.tenant_id = e.tenant_id and w.environment_id = e.environment_id
                and w.wallet_status = 'active' and w.status = 'published' and (w.alert_settings ->> 'alert_enabled') = 'true')
  or exists (select from features f where f.tenant_id = e.tenant_id and f.environment_id = e.environment_id
                and f.status = 'published' and (f.alert_settings ->> 'alert_enabled') = 'true')
  or exists (select from settings s where s.tenant_id = e.tenant_id and s.environment_id = e.environment_id
                and s.key = 'wallet_balance_alert_config' and s.status = 'published' and (s.value ->> 'alert_enabled') = 'true')`;

/**
 * SQL condition of an environment that has a wallet with automatic top-ups. The balances of these wallets are checked even if no alert
 * can fire.
 */
const OR_FILLS = `
  or exists (select from wallets w where w.tenant_id = e.tenant_id and w.environment_id = e.environment_id and ${isSelfFilling('w')})`;

/** Returns `from` if any alert can fire in this environment. */
export function nextAlertCheck(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { from }: { from: Date },
): Instant {
  return database.raw(
    `(select ?::timestamptz from (values (?::text, ?::text)) as e (tenant_id, environment_id) where ${IS_WATCHED})`,
    [from.toISOString(), tenant_id, environment_id],
  );
}

/**
 * Lists those of `scopes` in which an alert can fire, each as `tenant environment`, by four or five index lookups.
 * `or_fills` includes environments with automatic top-ups.
 */
export async function listWatchedScopes(
  database: Database,
  scopes: readonly Scope[],
  { or_fills = false } = {},
): Promise<Set<string>> {
  if (scopes.length === 0) return new Set();
  const column = (field: keyof Scope) => scopes.map((scope) => scope[field]);
  const { rows } = await database.raw(
    `select tenant_id, environment_id from unnest(?::text[], ?::text[]) as e (tenant_id, environment_id) where ${IS_WATCHED}${or_fills ? OR_FILLS : ''}`,
    [column('tenant_id'), column('environment_id')],
  );
  return new Set(rows.map((one: Scope) => `${one.tenant_id} ${one.environment_id}`));
}

/**
 * Finds the earliest end after `from` of a period whose spending has reached an alert level. Spending restarts at 0
 * then.
 */
export async function findNextPeriodAfterReached(
  database: Database,
  { tenant_id, environment_id }: Scope,
  from: Date,
): Promise<Date | null> {
  const { rows } = await database.raw(
    `select min(s.current_period_end) as first
       from alert_settings a
       join subscriptions s using (tenant_id, environment_id)
       join alert_states r using (tenant_id, environment_id, entity_id)
      where a.tenant_id = ? and a.environment_id = ? and a.status = 'published' and a.enabled
        and s.id = coalesce(a.parent_entity_id, a.entity_id) and s.status = 'published' and s.subscription_status in ('active', 'trialing')
        and r.parent_entity_id = coalesce(a.parent_entity_id, '') and r.alert_status <> 'ok'
        and s.current_period_end > ?`,
    [tenant_id, environment_id, from],
  );
  return rows[0].first ? new Date(rows[0].first) : null;
}

export async function listCustomersToAlert(database: Database, filter: DueQuery): Promise<DueRecord[]> {
  const due = database('customers').where('status', 'published').whereRaw(WATCHED);
  return listRoundRobin(database, narrowToEnvironments(due, 'customers', filter), { by: ['created_at'], ...filter });
}

/** Lists the external ids of all customers of the environment if any alert can fire in it, otherwise none. */
export async function listExternalIdsToAlert(
  database: Database,
  { tenant_id, environment_id }: Scope,
): Promise<readonly string[]> {
  if ((await listWatchedScopes(database, [{ tenant_id, environment_id }])).size === 0) return [];
  // All customers are listed, because the watched spending of one may be the usage of another.
  const all: { external_id: string }[] = await database('customers')
    .where({ tenant_id, environment_id, status: 'published' })
    .select('external_id');
  return all.map(({ external_id }) => external_id);
}

/**
 * Loads whether the setting of the environment, or a feature, watches wallet balances. Settings of single wallets are
 * not included.
 */
export async function loadBalanceWatchers(
  database: Database,
  { tenant_id, environment_id }: Scope,
): Promise<{ readonly by_default: boolean; readonly by_feature: boolean }> {
  const { rows } = await database.raw(
    `select exists (select from settings
                     where tenant_id = ? and environment_id = ? and key = 'wallet_balance_alert_config'
                       and status = 'published' and (value ->> 'alert_enabled') = 'true') as by_default,
            exists (select from features
                     where tenant_id = ? and environment_id = ?
                       and status = 'published' and (alert_settings ->> 'alert_enabled') = 'true') as by_feature`,
    [tenant_id, environment_id, tenant_id, environment_id],
  );
  return rows[0];
}

/**
 * Lists the features with alert levels that this wallet's customer pays for: an active or trialing subscription has a
 * line for them.
 */
export async function listWatchedFeatures(
  database: Database,
  { tenant_id, environment_id, customer_id, currency }: Scope & { customer_id: string; currency: string },
): Promise<string[]> {
  const { rows } = await database.raw(
    `select distinct f.id
       from subscriptions s
       join subscription_line_items l using (tenant_id, environment_id)
       join prices p using (tenant_id, environment_id)
       join features f using (tenant_id, environment_id)
      where s.tenant_id = ? and s.environment_id = ? and coalesce(nullif(s.invoicing_customer_id, ''), s.customer_id) = ?
        and s.currency = ? and s.status = 'published' and s.subscription_status in ('active', 'trialing')
        and l.subscription_id = s.id and l.status = 'published' and p.id = l.price_id and f.meter_id = p.meter_id
        and f.status = 'published' and (f.alert_settings ->> 'alert_enabled') = 'true'`,
    [tenant_id, environment_id, customer_id, currency],
  );
  return rows.map(({ id }: { id: string }) => id);
}
