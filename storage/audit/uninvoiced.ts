/** Subscriptions whose usage should be invoiced, and the times that their invoice lines cover. */
import type { Scope } from '../../core/foundation/scope.ts';
import { type Milliseconds, toInstant } from '../../core/foundation/time/instant.ts';
import type { Period } from '../../core/foundation/time/period.ts';
import type { Database } from '../foundation/stores.ts';

export type NamedSubscription = Scope & { readonly id: string };

/** Inherited subscriptions are excluded: their parent has the lines. */
const IS_AUDITED = `status = 'published' and subscription_status in ('active', 'cancelled') and subscription_type <> 'INHERITED'`;

/** Lists the subscriptions that ended, advanced or changed most recently. */
export async function listLastMovedSubscriptions(database: Database, count: number): Promise<NamedSubscription[]> {
  const { rows } = await database.raw(
    `select tenant_id, environment_id, id from subscriptions where ${IS_AUDITED} order by updated_at desc, id limit ?`,
    [count],
  );
  return rows;
}

/** Lists subscriptions of the newest invoices, their children, and some at random; each part uses an index. */
export async function sampleMovedSubscriptions(database: Database, count: number): Promise<NamedSubscription[]> {
  const { rows } = await database.raw(
    `with newest as (
       select tenant_id, environment_id, subscription_id as id from invoices
        where subscription_id is not null order by invoices.id desc limit :count
     ), named as (
       select * from newest
        union (select c.tenant_id, c.environment_id, c.id from newest
                 join subscriptions c on c.tenant_id = newest.tenant_id and c.environment_id = newest.environment_id
                                     and c.parent_subscription_id = newest.id
                limit :count)
        union (select tenant_id, environment_id, id from subscriptions tablesample system (1) limit :count)
     )
     select s.tenant_id, s.environment_id, s.id from named join subscriptions s using (tenant_id, environment_id, id)
      where ${IS_AUDITED}`,
    { count },
  );
  return rows;
}

/**
 * Times covered by lines of each line item, on any invoice. A void invoice counts, because it was voided deliberately, and so does
 * an archived one. A line that corrects another does not count.
 */
export async function loadInvoicedPeriods(
  database: Database,
  { tenant_id, environment_id }: Scope,
  line_item_ids: readonly string[],
): Promise<Map<string, Period[]>> {
  const { rows } = await database.raw(
    `select id, lower(time) as start_date, upper(time) as end_date
       from (select subscription_line_item_id as id, range_agg(tstzrange(period_start, period_end)) as times
               from invoice_line_items
              where tenant_id = ? and environment_id = ? and subscription_line_item_id = any(?)
                and parent_line_item_id is null and period_start < period_end
              group by 1) by_line, unnest(times) as time`,
    [tenant_id, environment_id, [...line_item_ids]],
  );
  const times = new Map<string, Period[]>();
  for (const { id, start_date, end_date } of rows as { id: string; start_date: string; end_date: string }[])
    times.set(id, [...(times.get(id) ?? []), { start: toInstant(start_date), end: toInstant(end_date) }]);
  return times;
}

/**
 * Loads the period ends of the final invoices of ended subscriptions, by subscription. Such invoices have the billing
 * reason PRORATION.
 */
export async function loadCancellationInvoiceEnds(
  database: Database,
  { tenant_id, environment_id }: Scope,
  subscription_ids: readonly string[],
): Promise<Map<string, Set<Milliseconds>>> {
  const { rows } = await database.raw(
    `select subscription_id, period_end from invoices
      where tenant_id = ? and environment_id = ? and subscription_id = any(?) and billing_reason = 'PRORATION' and period_end is not null`,
    [tenant_id, environment_id, [...subscription_ids]],
  );
  const ends = new Map<string, Set<Milliseconds>>();
  for (const { subscription_id, period_end } of rows as { subscription_id: string; period_end: string }[])
    ends.set(subscription_id, (ends.get(subscription_id) ?? new Set()).add(toInstant(period_end)));
  return ends;
}
