/** Where the lines of a subscription are invoiced (docs/rules/subscriptions.md). */
import type { Subscription } from './record.ts';

/** The customer who receives the invoices of a subscription. */
export function deriveAddressee({
  invoicing_customer_id,
  customer_id,
}: Pick<Subscription, 'invoicing_customer_id' | 'customer_id'>): string {
  return invoicing_customer_id || customer_id;
}

/** Finds the parent on whose invoices the lines of a grouped subscription appear. Null if the subscription has invoices of its own. */
export function findInvoicingParentId({
  subscription_type,
  parent_subscription_id,
}: Pick<Subscription, 'subscription_type' | 'parent_subscription_id'>): string | null {
  return subscription_type === 'grouped_invoicing' ? parent_subscription_id || null : null;
}
