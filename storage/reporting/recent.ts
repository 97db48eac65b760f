/** Counts of recently created records, for dashboards. */

import type { Scope } from '../../core/foundation/scope.ts';
import { formatMs } from '../../core/foundation/time/instant.ts';
import type { Period } from '../../core/foundation/time/period.ts';
import type { PaymentStatus } from '../../core/invoicing/invoice/record.ts';
import type { Database } from '../foundation/stores.ts';
import { InvoiceModel } from '../models/invoicing/invoice.ts';
import { SubscriptionModel } from '../models/subscriptions/subscription.ts';

type CountedBy<Column extends string, Value> = Record<Column, Value> & { readonly count: string };

/** Counts the subscriptions created in the period, without drafts, by plan. */
export async function countSubscriptionsByPlan(
  scope: Scope,
  { start, end }: Period,
  database: Database,
): Promise<{ plan_id: string; count: number }[]> {
  const rows = (await SubscriptionModel.in(scope, database)
    .select('plan_id')
    .count('* as count')
    .where('status', 'published')
    .whereNot('subscription_status', 'draft')
    .where('created_at', '>=', formatMs(start))
    .where('created_at', '<', formatMs(end))
    .groupBy('plan_id')) as unknown as CountedBy<'plan_id', string>[];
  return rows.map(({ plan_id, count }) => ({ plan_id, count: Number(count) }));
}

/** Counts the final invoices created in the period, by payment status. */
export async function countInvoicesByPayment(
  scope: Scope,
  { start, end }: Period,
  database: Database,
): Promise<{ payment_status: PaymentStatus; count: number }[]> {
  const rows = (await InvoiceModel.in(scope, database)
    .select('payment_status')
    .count('* as count')
    .where({ status: 'published', invoice_status: 'FINALIZED' })
    .where('created_at', '>=', formatMs(start))
    .where('created_at', '<', formatMs(end))
    .groupBy('payment_status')) as unknown as CountedBy<'payment_status', PaymentStatus>[];
  return rows.map(({ payment_status, count }) => ({ payment_status, count: Number(count) }));
}
