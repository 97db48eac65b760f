/** The rows of a payment in the order in which every writer takes them: the subscription, the invoice, the payment. */
import type { Scope } from '../../core/scope.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import type { Transaction } from '../../storage/stores.ts';
import { type HeldInvoice, holdInvoice } from '../invoices/hold-invoice.ts';

export type HeldPayment = HeldInvoice & { readonly payment: PaymentModel };

export async function holdPayment(transaction: Transaction, scope: Scope, id: string): Promise<HeldPayment> {
  const { destination_id } = await PaymentModel.fetchPublished(scope, id, { database: transaction });
  const held = await holdInvoice(transaction, scope, destination_id);
  const payment = await PaymentModel.fetchPublished(scope, id, { database: transaction, lock: true });
  return { ...held, payment };
}
