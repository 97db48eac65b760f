/** Sums of customers and plans for the rows of a list, each with one statement however many rows it has. */
import type { Scope } from '../../core/foundation/scope.ts';
import type { PricedItem } from '../../core/rating/line-amount.ts';
import type { Database } from '../foundation/stores.ts';
import { UNPAID_INVOICE } from '../models/invoicing/unpaid.ts';

type CustomerSum = {
  readonly customer_id: string;
  readonly sum: 'owed' | 'overdue' | 'balance';
  readonly currency: string;
  readonly amount: string;
};

/**
 * Sums per customer and currency: the unpaid amounts of final invoices (`owed`), those past their due date (`overdue`), and the balances of
 * active wallets (`balance`).
 */
export async function listCustomerSums(
  scope: Scope,
  { customer_ids, now }: { customer_ids: readonly string[]; now: Date },
  database: Database,
): Promise<CustomerSum[]> {
  const { rows } = await database.raw(
    `with unpaid as (
       select customer_id, currency, amount_remaining, due_date < :now as overdue
         from invoices
        where tenant_id = :tenant_id and environment_id = :environment_id and customer_id = any(:customer_ids)
          and ${UNPAID_INVOICE}
     )
     select customer_id, 'owed' as sum, currency, trim_scale(sum(amount_remaining))::text as amount
       from unpaid group by customer_id, currency
      union all
     select customer_id, 'overdue', currency, trim_scale(sum(amount_remaining))::text
       from unpaid where overdue group by customer_id, currency
      union all
     select customer_id, 'balance', currency, trim_scale(sum(balance))::text
       from wallets
      where tenant_id = :tenant_id and environment_id = :environment_id and customer_id = any(:customer_ids)
        and wallet_status = 'active' and status = 'published'
      group by customer_id, currency
      order by customer_id, currency`,
    { ...scope, customer_ids, now: now.toISOString() },
  );
  return rows;
}

/** Names of the plans of each customer's subscriptions that have begun and are not cancelled, in alphabetical order. */
export async function loadPlanNames(
  scope: Scope,
  customer_ids: readonly string[],
  database: Database,
): Promise<Map<string, string[]>> {
  const { rows } = await database.raw(
    `select s.customer_id, array_agg(distinct p.name order by p.name) as plan_names
       from subscriptions s
       join plans p on p.tenant_id = :tenant_id and p.environment_id = :environment_id and p.id = s.plan_id
      where s.tenant_id = :tenant_id and s.environment_id = :environment_id and s.customer_id = any(:customer_ids)
        and s.status = 'published' and s.subscription_status not in ('draft', 'cancelled')
      group by s.customer_id`,
    { ...scope, customer_ids },
  );
  return new Map(rows.map((row: { customer_id: string; plan_names: string[] }) => [row.customer_id, row.plan_names]));
}

/** Counts the active and trialing subscriptions of each plan; a plan without any is absent. */
export async function countActiveSubscriptions(
  scope: Scope,
  plan_ids: readonly string[],
  database: Database,
): Promise<Map<string, number>> {
  const { rows } = await database.raw(
    `select plan_id, count(*)::int as count
       from subscriptions
      where tenant_id = :tenant_id and environment_id = :environment_id and plan_id = any(:plan_ids)
        and status = 'published' and subscription_status in ('active', 'trialing')
      group by plan_id`,
    { ...scope, plan_ids },
  );
  return new Map(rows.map((row: { plan_id: string; count: number }) => [row.plan_id, row.count]));
}

/** Equal fixed charges of the subscriptions of a plan, and their number. */
type RecurringCharges = Pick<PricedItem, 'billing_period' | 'billing_period_count'> & {
  readonly plan_id: string;
  readonly currency: string;
  readonly price_id: string;
  readonly quantity: string;
  readonly count: number;
};

/**
 * Groups the fixed charges in force at this instant by price and quantity, because the charges of a plan are nearly all equal. A charge is in
 * force from the end of a trial until the end of its line or subscription (toBilledLineItem of actions/rating/billable-items.ts).
 */
export async function listRecurringCharges(
  scope: Scope,
  { plan_ids, now }: { plan_ids: readonly string[]; now: Date },
  database: Database,
): Promise<RecurringCharges[]> {
  const { rows } = await database.raw(
    `select s.plan_id, s.currency, l.price_id, l.quantity::text as quantity, l.billing_period, l.billing_period_count,
            count(*)::int as count
       from subscriptions s
       join subscription_line_items l
         on l.tenant_id = :tenant_id and l.environment_id = :environment_id and l.subscription_id = s.id
      where s.tenant_id = :tenant_id and s.environment_id = :environment_id and s.plan_id = any(:plan_ids)
        and s.status = 'published' and s.subscription_status not in ('draft', 'incomplete')
        and l.status = 'published' and l.price_type = 'FIXED' and l.billing_period <> 'ONETIME'
        and greatest(coalesce(l.charged_from, l.start_date), s.trial_end) <= :now
        and coalesce(least(coalesce(l.charged_until, l.end_date), s.end_date, coalesce(s.cancel_at,
                           case when s.cancel_at_period_end then s.current_period_end end)), 'infinity') > :now
      group by s.plan_id, s.currency, l.price_id, l.quantity, l.billing_period, l.billing_period_count
      order by s.plan_id, s.currency, l.price_id, l.quantity`,
    { ...scope, plan_ids, now: now.toISOString() },
  );
  return rows;
}
