/**
 * Receives a provider's notification about a payment. After the signature check it only triggers a query: the provider's current state is
 * booked, so repeated or reordered notifications change nothing (docs/rules/payments.md, "Provider notifications").
 */
import { notAllowed, notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { PaymentGateway } from '../../../core/payments/record.ts';
import type { ProviderNotice } from '../../../integrations/payments/provider.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { createProvider, createSandbox } from '../../payments/providers.ts';
import { refreshPayment } from './process-payment.ts';

export async function receiveNotice(
  stores: Stores,
  scope: Scope,
  { gateway, notice, now }: { gateway: PaymentGateway; notice: ProviderNotice; now: () => Promise<Date> },
): Promise<PaymentModel> {
  const { gateway_payment_id } = await createProvider(stores, gateway).receive(scope, notice);
  const [payment] = await PaymentModel.in(scope, stores.postgres).where({
    gateway_payment_id,
    payment_gateway: gateway,
  });
  // The provider sends the notification again, and by then the payment may have its provider id.
  if (!payment) throw notFound('payment', gateway_payment_id);
  return refreshPayment(stores, payment, { now: await now() });
}

/** Performs the customer's or the bank's action in the sandbox, where nobody else can. */
export async function actInSandbox(
  stores: Stores,
  scope: Scope,
  { id, outcome, by }: { id: string; outcome: 'succeeded' | 'failed'; by: ChangeAuthor },
): Promise<PaymentModel> {
  const payment = await PaymentModel.fetchPublished(scope, id, { database: stores.postgres });
  if (payment.payment_gateway !== 'sandbox' || !payment.gateway_payment_id)
    throw notAllowed('this payment is none that the sandbox knows');
  await createSandbox(stores).act(scope, payment.gateway_payment_id, outcome);
  return refreshPayment(stores, payment, by);
}
