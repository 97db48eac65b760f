/** Unpaid amounts of final invoices by age, over all customers, summed by the database. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';

type AgedAmounts = {
  currency: string;
  not_due: string;
  overdue_1_to_30: string;
  overdue_31_to_60: string;
  overdue_61_to_90: string;
  overdue_over_90: string;
  total_overdue: string;
  total_unpaid: string;
  invoice_count: number;
};
type ReceivablesTotal = AgedAmounts & { customer_count: number };
type CustomerReceivables = AgedAmounts & {
  customer_id: string;
  external_customer_id: string;
  customer_name: string;
  oldest_due_date: string | null;
};
type Receivables = { totals: ReceivablesTotal[]; items: CustomerReceivables[]; count: number };

type ReceivablesInput = {
  readonly currency: string | null;
  readonly now: Date;
  readonly limit: number;
  readonly offset: number;
};

const AGES = {
  not_due: 'overdue_days is null',
  overdue_1_to_30: 'overdue_days <= 30',
  overdue_31_to_60: 'overdue_days > 30 and overdue_days <= 60',
  overdue_61_to_90: 'overdue_days > 60 and overdue_days <= 90',
  overdue_over_90: 'overdue_days > 90',
  total_overdue: 'overdue_days is not null',
  total_unpaid: 'true',
};
const SUMS = Object.entries(AGES)
  .map(([name, age]) => `trim_scale(coalesce(sum(amount_remaining) filter (where ${age}), 0))::text as ${name}`)
  .join(', ');

/** Unpaid invoices; a begun day counts. */
const UNPAID = `unpaid as (
    select i.customer_id, i.currency, i.amount_remaining, i.due_date,
           case when i.due_date < :now
                then ceil(extract(epoch from :now::timestamptz - i.due_date) / 86400) end as overdue_days
      from invoices i
     where i.tenant_id = :tenant_id and i.environment_id = :environment_id and i.invoice_status = 'FINALIZED'
       and i.status = 'published' and i.amount_remaining > 0 and (:currency::text is null or i.currency = :currency)
  )`;

export async function loadReceivables(scope: Scope, input: ReceivablesInput, database: Database): Promise<Receivables> {
  const bindings = { ...scope, ...input, now: input.now.toISOString() };
  const totals = await database.raw(
    `with ${UNPAID}
     select currency, ${SUMS}, count(*)::int as invoice_count, count(distinct customer_id)::int as customer_count
       from unpaid group by currency order by currency`,
    bindings,
  );
  const page = await database.raw(
    `with ${UNPAID}, owing as (
       select customer_id, currency, ${SUMS}, count(*)::int as invoice_count, min(due_date) as oldest_due_date
         from unpaid group by customer_id, currency
     )
     select o.*, c.external_id as external_customer_id, c.name as customer_name
       from owing o
       join customers c on c.tenant_id = :tenant_id and c.environment_id = :environment_id and c.id = o.customer_id
      order by o.total_overdue::numeric desc, o.total_unpaid::numeric desc, o.customer_id, o.currency
      limit :limit offset :offset`,
    bindings,
  );
  const counted = await database.raw(
    `with ${UNPAID} select count(distinct (customer_id, currency))::int as count from unpaid`,
    bindings,
  );
  return { totals: totals.rows, items: page.rows, count: counted.rows[0].count };
}
