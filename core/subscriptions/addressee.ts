/** The customer who receives the invoices of a subscription (docs/rules/subscriptions.md). */
import type { Subscription } from './record.ts';

/** The customer who receives the invoices of a subscription. */
export function deriveAddressee({
  invoicing_customer_id,
  customer_id,
}: Pick<Subscription, 'invoicing_customer_id' | 'customer_id'>): string {
  return invoicing_customer_id || customer_id;
}
