/**
 * Receives a provider's notification about a payment. After the signature check it only triggers a query: the provider's current state is
 * applied, so repeated or reordered notifications change nothing (docs/rules/payments.md, "Provider notifications").
 */
import { notAllowed, notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { PaymentGateway } from '../../../core/payments/record.ts';
import type { ProviderNotice } from '../../../integrations/payment-provider.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { createProvider } from '../../payments/providers.ts';
import { refreshPayment } from './process-payment.ts';

export async function receiveNotice(
  stores: Stores,
  scope: Scope,
  { gateway, notice, now }: { gateway: PaymentGateway; notice: ProviderNotice; now: () => Promise<Date> },
): Promise<PaymentModel> {
  const provider = createProvider(stores, gateway);
  if (!provider.receive) throw notAllowed(`${gateway} sends its notices to the webhook of its connection`);
  const { gateway_payment_id } = await provider.receive(scope, notice);
  const [payment] = await PaymentModel.in(scope, stores.postgres).where({
    gateway_payment_id,
    payment_gateway: gateway,
  });
  // The provider repeats an unanswered notification; by then the id of the charge may be stored here.
  if (!payment) throw notFound('payment', gateway_payment_id);
  return refreshPayment(stores, payment, { now: await now() });
}

/** Decides a simulated payment in place of the customer or the bank, which a simulation lacks. */
export async function applySimulatedOutcome(
  stores: Stores,
  scope: Scope,
  { id, outcome, by }: { id: string; outcome: 'succeeded' | 'failed'; by: ChangeAuthor },
): Promise<PaymentModel> {
  const payment = await PaymentModel.fetchPublished(scope, id, { database: stores.postgres });
  const { payment_gateway, gateway_payment_id } = payment;
  const provider = payment_gateway ? createProvider(stores, payment_gateway) : null;
  if (!provider?.simulate || !gateway_payment_id) throw notAllowed('the provider of this payment is not simulated');
  await provider.simulate(scope, gateway_payment_id, outcome);
  return refreshPayment(stores, payment, by);
}
