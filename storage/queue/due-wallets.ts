/**
 * Expired credits and automatic top-ups that are due. Credits that an invoice may still use are not due
 * (docs/rules/wallets.md, "Expiry").
 */
import type { Knex } from 'knex';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../foundation/stores.ts';
import {
  buildEarliestQuery,
  type DueQuery,
  type DueRecord,
  type Instant,
  listRoundRobin,
  narrowToEnvironments,
} from './due-billing.ts';

/**
 * Selects lots with remaining credits that no invoice and no reservation can still use; the callers check the expiry.
 * An unbilled period, or a draft, void or unpaid postpaid invoice, may still use a lot if its period ended before the
 * lot's expiry. So may a reservation that will be charged before the lot's expiry.
 */
function unused(database: Database): Knex.QueryBuilder {
  const own = (table: string) => `${table}.tenant_id = wallet_transactions.tenant_id
    and ${table}.environment_id = wallet_transactions.environment_id and ${table}.status = 'published'`;
  return database('wallet_transactions')
    .where({ type: 'credit' })
    .where('credits_available', '>', 0)
    .whereRaw(
      `not exists (select from subscriptions s where ${own('s')}
                      and (s.customer_id = wallet_transactions.customer_id or s.invoicing_customer_id = wallet_transactions.customer_id)
                      and s.currency = wallet_transactions.currency and s.subscription_status in ('active', 'trialing')
                      and s.current_period_end <= wallet_transactions.expiry_date)`,
    )
    .whereRaw(
      `not exists (select from invoices i join wallets w on w.id = wallet_transactions.wallet_id where ${own('i')}
                      and i.customer_id = wallet_transactions.customer_id and i.currency = wallet_transactions.currency
                      and i.period_end <= wallet_transactions.expiry_date
                      and (i.invoice_status = 'DRAFT'
                           or (w.wallet_type = 'POST_PAID' and i.invoice_status = 'FINALIZED' and i.amount_remaining > 0)
                           or (i.invoice_status = 'VOIDED' and ${BILLED_AGAIN_SOON})))`,
    )
    .whereRaw(
      `not exists (select from reservations r where ${own('r')}
                      and r.customer_id = wallet_transactions.customer_id and r.subject_id = wallet_transactions.wallet_id
                      and r.reservation_status = 'held' and r.on_expiry = 'charge'
                      and r.expires_at <= wallet_transactions.expiry_date)`,
    );
}

/**
 * SQL condition of a void invoice whose returned credits a new billing of its period may use. These credits remain
 * usable until the end of the period in which the invoice was voided.
 */
const BILLED_AGAIN_SOON = `i.recalculated_invoice_id is null and i.total_prepaid_credits_applied > 0
  and exists (select from subscriptions s where s.id = i.subscription_id and s.tenant_id = i.tenant_id
                 and s.environment_id = i.environment_id and s.status = 'published'
                 and s.subscription_status in ('active', 'trialing') and s.current_period_end > i.voided_at
                 and s.current_period_start <= i.voided_at)`;

export async function listExpiredLots(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = unused(database).where('expiry_date', '<', now);
  return listRoundRobin(database, narrowToEnvironments(due, 'wallet_transactions', filter), {
    by: ['expiry_date'],
    ...filter,
  });
}

/** Whether this lot is still expired. The caller has locked its wallet. */
export async function isExpiredLot(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { id, now }: { id: string; now: Date },
): Promise<boolean> {
  const found = await unused(database)
    .where({ tenant_id, environment_id, id })
    .where('expiry_date', '<', now)
    .select('id');
  return found.length > 0;
}

/** Finds the instant at which the next lot of this environment has expired: a millisecond after its expiry. */
export function nextExpiry(database: Database, scope: Scope): Instant {
  const due = buildEarliestQuery(database, scope, { of: () => unused(database), columns: ['expiry_date'] });
  return database.raw(`? + interval '1 millisecond'`, [due]);
}

/** SQL condition of a wallet that tops up automatically. `wallet` is the name of the wallet's row in the statement. */
export const isSelfFilling = (wallet: string) =>
  `${wallet}.status = 'published' and ${wallet}.wallet_status = 'active'
   and ${wallet}.auto_topup is not null and (${wallet}.auto_topup ->> 'enabled')::boolean`;

function filling(database: Database): Knex.QueryBuilder {
  return database('wallets').whereRaw(isSelfFilling('wallets'));
}

export async function listCustomerWalletsWithAutoTopUp(
  database: Database,
  { tenant_id, environment_id }: Scope,
  customer_id: string,
): Promise<string[]> {
  const found = filling(database).where({ tenant_id, environment_id, customer_id }).orderBy('id');
  return (await found.select('id')).map(({ id }: { id: string }) => id);
}

export async function listWalletsWithAutoTopUp(database: Database, filter: DueQuery): Promise<DueRecord[]> {
  return listRoundRobin(database, narrowToEnvironments(filling(database), 'wallets', filter), {
    by: ['id'],
    ...filter,
  });
}

/** Finds the next midnight UTC, at which wallets are checked in an environment with a test clock. */
export function nextSelfFilling(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { from }: { from: Date },
): Instant {
  const having = filling(database).where({ tenant_id, environment_id }).select('id');
  const midnight = new Date(from);
  midnight.setUTCHours(24, 0, 0, 0);
  return database.raw('case when exists ? then ?::timestamptz end', [having as never, midnight.toISOString()]);
}

/** Returns the creation time of the environment's first wallet transaction at or after `since`. */
export async function nextMovement(
  database: Database,
  { tenant_id, environment_id }: Scope,
  since: Date,
): Promise<Date | null> {
  const [row] = await database('wallet_transactions')
    .where({ tenant_id, environment_id })
    .where('created_at', '>=', since)
    .min('created_at as first');
  return row?.first ? new Date(row.first) : null;
}
