/**
 * Locks the rows of a payment in the order of lock-in-order.ts, so that concurrent transactions cannot deadlock:
 * subscription, customer (if a payment method may be stored), invoice, payment.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../storage/models/invoicing/invoice.ts';
import { PaymentModel } from '../../storage/models/payments/payment.ts';
import { type LockedInvoice, lockInvoice, lockInvoiceAndSubscription } from '../invoicing/invoices/lock-invoice.ts';
import { lockParties } from '../subscriptions/lock-in-order.ts';

export type LockedPayment = LockedInvoice & { readonly payment: PaymentModel };

export async function lockPayment(transaction: Transaction, scope: Scope, id: string): Promise<LockedPayment> {
  const seen = await PaymentModel.fetchPublished(scope, id, { database: transaction });
  const { destination_id, customer_id } = seen;
  const { subscription_id = null } = await InvoiceModel.fetch(scope, destination_id, { database: transaction });
  if (seen.save_card_and_make_default) await lockParties(scope, { subscription_id, customer_id }, transaction);
  const lockedInvoice = await lockInvoiceAndSubscription(transaction, scope, { id: destination_id, subscription_id });
  const payment = await PaymentModel.fetchPublished(scope, id, { database: transaction, lock: true });
  return { ...lockedInvoice, payment };
}

/**
 * Locks a received payment whose invoice this transaction has locked already. The customer comes before the invoice in the order of
 * locks, and a refund stores no payment method, so the customer is not locked.
 */
export async function lockReceivedPayment(
  transaction: Transaction,
  scope: Scope,
  { id, invoice_id }: { id: string; invoice_id: string },
): Promise<LockedPayment> {
  const locked = await lockInvoice(transaction, scope, invoice_id);
  const payment = await PaymentModel.fetchPublished(scope, id, { database: transaction, lock: true });
  return { ...locked, payment };
}
