/**
 * Pushes a payment that was received elsewhere to the provider that has its invoice, and afterwards its refunds
 * (push-refunds.ts). A payment that the provider itself took or reported is never pushed to it (docs/integrations/README.md,
 * "Money after the invoice").
 */
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { RECEIVED } from '../../../core/payments/moves.ts';
import { isOverpaymentKey } from '../../../core/payments/record.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import type { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentRefundModel } from '../../../storage/models/payments/payment-refund.ts';
import { NothingToSend, type PushTarget, pushIntended } from '../../foundation/connections/push-record.ts';
import { intendMoney } from './intend-money.ts';
import { pushRefunds } from './push-refunds.ts';
import { isTakenThere } from './sent-invoice.ts';

export async function pushPayment(
  stores: Postgres,
  scope: Scope,
  payment_id: string,
  target: PushTarget,
): Promise<IntegrationMappingModel> {
  const payment = await PaymentModel.fetchPublished(scope, payment_id, { database: stores.postgres });
  if (isTakenThere(payment, target.connection))
    throw new NothingToSend(`${target.connection.provider_type} took or reported this payment itself`);
  const { id, created_at, destination_id } = payment;
  const entity = { entity_type: 'payment', entity_id: id } as const;
  const { payment_status } = payment;
  const isReceived = RECEIVED.includes(payment_status);
  const refusal = isReceived ? null : `a payment that is ${payment_status} is not sent to a provider`;
  const money = { entity, invoice_id: destination_id, since: payment.succeeded_at ?? created_at, refusal };
  const sent = await intendMoney(stores, scope, { money, target });
  if (!isReceived)
    throw new ProviderError('person', `payment ${id} is ${payment_status} here, but counted at the provider`);
  const overpaid = await sumOverpaid(stores, payment);
  const made = await pushIntended(stores, sent.mapping, target, (account, key) =>
    account.pushPayment!({
      ...key,
      payment_id: id,
      provider_customer_id: sent.provider_customer_id,
      provider_invoice_id: sent.provider_invoice_id,
      amount: new Decimal(payment.amount).minus(overpaid).toFixed(),
      currency: payment.currency,
      paid_at: payment.succeeded_at ?? created_at,
      reference: payment.gateway_payment_id ?? id,
    }),
  );
  await pushRefunds(stores, { payment, sent: { ...sent, mapping: made } }, target);
  return made;
}

/** Sums the refunds of overpaid amounts, which the invoice never contained. */
async function sumOverpaid({ postgres }: Postgres, payment: PaymentModel): Promise<Decimal> {
  const where = { payment_id: payment.id, refund_status: 'succeeded', status: 'published' };
  const refunds = await PaymentRefundModel.in(payment, postgres).where(where);
  const overpaid = refunds.filter(({ idempotency_key }) => isOverpaymentKey(idempotency_key));
  return sumDecimals(overpaid.map(({ amount }) => new Decimal(amount)));
}
