/**
 * The rows of a payment in the order in which every writer takes them: the customer, where a way to pay may be kept of it, the
 * subscription, the invoice, the payment.
 */
import type { Scope } from '../../core/scope.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import type { Transaction } from '../../storage/stores.ts';
import { type HeldInvoice, holdInvoice } from '../invoices/hold-invoice.ts';

export type HeldPayment = HeldInvoice & { readonly payment: PaymentModel };

export async function holdPayment(transaction: Transaction, scope: Scope, id: string): Promise<HeldPayment> {
  const seen = await PaymentModel.fetchPublished(scope, id, { database: transaction });
  const { destination_id, customer_id } = seen;
  if (seen.save_card_and_make_default)
    await CustomerModel.fetch(scope, customer_id, { database: transaction, lock: true });
  const held = await holdInvoice(transaction, scope, destination_id);
  const payment = await PaymentModel.fetchPublished(scope, id, { database: transaction, lock: true });
  return { ...held, payment };
}
