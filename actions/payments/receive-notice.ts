/**
 * A provider tells that something has become of a payment. Once its signature is checked it is only a reason to ask: what is booked
 * is what the provider says then, so that a notice that comes twice, or out of order, changes nothing
 * (docs/rules/payments.md, "Told by the provider").
 */
import { notAllowed, notFound } from '../../core/error.ts';
import type { PaymentGateway } from '../../core/payment/record.ts';
import type { Scope } from '../../core/scope.ts';
import type { ProviderNotice } from '../../integrations/payments/provider.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import type { Stores } from '../../storage/stores.ts';
import type { PaymentChangeAuthor } from './change-invoice-payment.ts';
import { refreshPayment } from './process-payment.ts';
import { createProvider, createSandbox } from './providers.ts';

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
  // It is told again by the provider, and by then the answer to our question may be written down.
  if (!payment) throw notFound('payment', gateway_payment_id);
  return refreshPayment(stores, payment, { now: await now() });
}

/** What the customer, or the bank, does at the sandbox: there nobody else can. */
export async function actInSandbox(
  stores: Stores,
  scope: Scope,
  { id, outcome, by }: { id: string; outcome: 'succeeded' | 'failed'; by: PaymentChangeAuthor },
): Promise<PaymentModel> {
  const payment = await PaymentModel.fetchPublished(scope, id, { database: stores.postgres });
  if (payment.payment_gateway !== 'sandbox' || !payment.gateway_payment_id)
    throw notAllowed('this payment is none that the sandbox knows');
  await createSandbox(stores).act(scope, payment.gateway_payment_id, outcome);
  return refreshPayment(stores, payment, by);
}
