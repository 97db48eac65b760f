/** Columns of exported subscriptions (docs/rules/exports.md, "Customers and subscriptions"). */
import type { Subscription } from '../../subscriptions/record.ts';
import { defineExportColumns } from './column.ts';
import { toExportMicroseconds } from './invoices.ts';

export type ExportedSubscription = Subscription & {
  readonly customer: { readonly external_id: string; readonly name: string } | null;
  readonly plan: { readonly name: string } | null;
};

const { text, word, integer, instant } = defineExportColumns<ExportedSubscription>();

export const SUBSCRIPTION_COLUMNS = [
  word('id', ({ id }) => id),
  word('customer_id', (subscription) => subscription.customer_id),
  text('customer_external_id', ({ customer }) => customer?.external_id ?? null),
  text('customer_name', ({ customer }) => customer?.name ?? null),
  word('plan_id', (subscription) => subscription.plan_id),
  text('plan_name', ({ plan }) => plan?.name ?? null),
  text('lookup_key', (subscription) => subscription.lookup_key ?? null),
  word('subscription_status', (subscription) => subscription.subscription_status),
  word('currency', ({ currency }) => currency),
  word('billing_period', (subscription) => subscription.billing_period),
  integer('billing_period_count', (subscription) => subscription.billing_period_count),
  word('timezone', ({ timezone }) => timezone),
  instant('start_date', (subscription) => toExportMicroseconds(subscription.start_date)),
  instant('end_date', (subscription) => toExportMicroseconds(subscription.end_date)),
  instant('current_period_start', (subscription) => toExportMicroseconds(subscription.current_period_start)),
  instant('current_period_end', (subscription) => toExportMicroseconds(subscription.current_period_end)),
  instant('trial_start', (subscription) => toExportMicroseconds(subscription.trial_start)),
  instant('trial_end', (subscription) => toExportMicroseconds(subscription.trial_end)),
  instant('cancel_at', (subscription) => toExportMicroseconds(subscription.cancel_at)),
  instant('cancelled_at', (subscription) => toExportMicroseconds(subscription.cancelled_at)),
  word('collection_method', (subscription) => subscription.collection_method),
  word('invoicing_customer_id', (subscription) => subscription.invoicing_customer_id ?? null),
  word('parent_subscription_id', (subscription) => subscription.parent_subscription_id ?? null),
  word('status', ({ status }) => status),
  instant('created_at', (subscription) => toExportMicroseconds(subscription.created_at)),
  instant('updated_at', (subscription) => toExportMicroseconds(subscription.updated_at)),
];
