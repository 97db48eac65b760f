/** The rows of a payment in the order in which every writer takes them: the subscription, the invoice, the payment. */
import type { Scope } from '../../core/scope.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Transaction } from '../../storage/stores.ts';

export type HeldInvoice = { readonly invoice: InvoiceModel; readonly subscription: SubscriptionModel | null };

export async function holdInvoice(transaction: Transaction, scope: Scope, id: string): Promise<HeldInvoice> {
  const holding = { database: transaction, lock: true };
  const { subscription_id } = await InvoiceModel.fetch(scope, id, { database: transaction });
  const subscription = subscription_id ? await SubscriptionModel.fetch(scope, subscription_id, holding) : null;
  return { subscription, invoice: await InvoiceModel.fetch(scope, id, holding) };
}

export type HeldPayment = HeldInvoice & { readonly payment: PaymentModel };

export async function holdPayment(transaction: Transaction, scope: Scope, id: string): Promise<HeldPayment> {
  const { destination_id } = await PaymentModel.fetchPublished(scope, id, { database: transaction });
  const held = await holdInvoice(transaction, scope, destination_id);
  const payment = await PaymentModel.fetchPublished(scope, id, { database: transaction, lock: true });
  return { ...held, payment };
}
