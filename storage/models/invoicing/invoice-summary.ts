/**
 * Billed and owed amounts of a customer per currency, from final invoices only, summed by the database. Amounts of CREDIT invoices
 * are in a wallet and reduce the invoices that it pays; subtracting them here would count them twice.
 */

import type { Scope } from '../../../core/foundation/scope.ts';
import { ADJUSTMENT_FIELDS } from '../../../core/rating/adjustment-fields.ts';
import type { Database } from '../../foundation/stores.ts';

type InvoiceSummary = {
  currency: string;
  total_revenue_amount: string;
  total_unpaid_amount: string;
  total_overdue_amount: string;
  total_invoice_count: number;
  unpaid_invoice_count: number;
  overdue_invoice_count: number;
  unpaid_usage_charges: string;
  unpaid_fixed_charges: string;
};

/** Charges of unpaid invoices after discounts and before tax, split by price type; a charge without a type counts as fixed. */
export async function loadInvoiceSummaries(
  scope: Scope,
  { customer_id, now }: { customer_id: string; now: Date },
  database: Database,
): Promise<InvoiceSummary[]> {
  const { rows } = await database.raw(
    `with final as (
       select id, currency, total, amount_remaining, amount_remaining > 0 as unpaid,
              amount_remaining > 0 and due_date < :now as overdue
         from invoices
        where tenant_id = :tenant_id and environment_id = :environment_id and customer_id = :customer_id
          and invoice_status = 'FINALIZED' and status = 'published'
     ), charges as (
       select f.currency,
              coalesce(sum(l.net) filter (where l.price_type = 'USAGE'), 0) as usage,
              coalesce(sum(l.net) filter (where l.price_type is distinct from 'USAGE'), 0) as fixed
         from final f
         join (
           select invoice_id, price_type,
                  ${['amount', ...ADJUSTMENT_FIELDS].join(' - ')} as net
             from invoice_line_items
            where tenant_id = :tenant_id and environment_id = :environment_id and status = 'published'
         ) l on l.invoice_id = f.id
        where f.unpaid
        group by f.currency
     )
     select f.currency,
            trim_scale(sum(greatest(f.total, 0)))::text as total_revenue_amount,
            trim_scale(coalesce(sum(f.amount_remaining) filter (where f.unpaid), 0))::text as total_unpaid_amount,
            trim_scale(coalesce(sum(f.amount_remaining) filter (where f.overdue), 0))::text as total_overdue_amount,
            count(*)::int as total_invoice_count,
            (count(*) filter (where f.unpaid))::int as unpaid_invoice_count,
            (count(*) filter (where f.overdue))::int as overdue_invoice_count,
            trim_scale(coalesce(max(c.usage), 0))::text as unpaid_usage_charges,
            trim_scale(coalesce(max(c.fixed), 0))::text as unpaid_fixed_charges
       from final f left join charges c on c.currency = f.currency
      group by f.currency
      order by sum(greatest(f.total, 0)) desc, f.currency`,
    { ...scope, customer_id, now: now.toISOString() },
  );
  return rows;
}
