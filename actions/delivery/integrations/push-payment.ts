/**
 * Pushes a payment that was received elsewhere to the provider that has its invoice, and afterwards its refunds as
 * credit notes. A payment that the provider itself took or reported is never pushed to it (docs/integrations/README.md,
 * "Money after the invoice").
 */
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { RECEIVED } from '../../../core/payments/moves.ts';
import { isOverpaymentKey } from '../../../core/payments/record.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import type { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentRefundModel } from '../../../storage/models/payments/payment-refund.ts';
import { loadPushKey, NothingToSend, type PushTarget, pushIntended } from '../../foundation/connections/push-record.ts';
import { intendMoney, type SentMoney } from './intend-money.ts';
import { isTakenThere, listReceivedPayments } from './sent-invoice.ts';

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
  const refunds = await listEndedRefunds(stores, payment);
  const taken = refunds.filter(({ idempotency_key }) => isOverpaymentKey(idempotency_key));
  const amount = new Decimal(payment.amount).minus(sumDecimals(taken.map((refund) => new Decimal(refund.amount))));
  const made = await pushIntended(stores, sent.mapping, target, (account, key) =>
    account.pushPayment!({
      ...key,
      payment_id: id,
      provider_customer_id: sent.provider_customer_id,
      provider_invoice_id: sent.provider_invoice_id,
      amount: amount.toFixed(),
      currency: payment.currency,
      paid_at: payment.succeeded_at ?? created_at,
      reference: payment.gateway_payment_id ?? id,
    }),
  );
  const returned = refunds.filter((refund) => !taken.includes(refund));
  if (returned.length > 0)
    await pushRefunds(stores, { payment, refunds: returned, sent: { ...sent, mapping: made } }, target);
  return made;
}

/** Lists finished refunds. A pending refund may still fail; `payment.updated` is emitted when it ends. */
async function listEndedRefunds({ postgres }: Postgres, payment: PaymentModel): Promise<PaymentRefundModel[]> {
  return await PaymentRefundModel.in(payment, postgres)
    .where({ payment_id: payment.id, refund_status: 'succeeded', status: 'published' })
    .orderBy('id');
}

type RefundedPayment = {
  readonly payment: PaymentModel;
  readonly refunds: readonly PaymentRefundModel[];
  readonly sent: SentMoney;
};

/**
 * Pushes refunds as credit notes. A refund has no mapping: the provider finds its credit note by the id of the refund.
 */
async function pushRefunds(
  stores: Postgres,
  { payment, refunds, sent }: RefundedPayment,
  target: PushTarget,
): Promise<void> {
  await checkRefunded(stores, payment);
  const exchanged = { ...(await loadPushKey(stores, sent.mapping)), is_key_renewed: true };
  for (const { id, amount, reason } of refunds) {
    const line = { description: reason ?? 'Refund', amount, line_item_id: null, period_start: null, period_end: null };
    await target.call(async (account) =>
      account.pushCreditNote?.({
        ...exchanged,
        key: id,
        credit_note_id: id,
        credit_note_number: id,
        provider_customer_id: sent.provider_customer_id,
        provider_invoice_id: sent.provider_invoice_id,
        currency: payment.currency,
        lines: [line],
        total: amount,
        effect: 'refunded_elsewhere',
        reason: 'ORDER_CHANGE',
      }),
    );
  }
}

/**
 * Refuses refunds that a credit note at the provider would show wrongly: one of an overpaid amount, or one after which
 * the customer owes the amount again.
 */
async function checkRefunded({ postgres }: Postgres, payment: PaymentModel): Promise<void> {
  const invoice = await InvoiceModel.fetch(payment, payment.destination_id, { database: postgres });
  const payments = await listReceivedPayments(postgres, invoice);
  const refunds = await PaymentRefundModel.in(invoice, postgres)
    .whereIn(
      'payment_id',
      payments.map(({ id }) => id),
    )
    .where({ status: 'published' })
    .whereNot('refund_status', 'failed');
  const refunded = sumDecimals(
    refunds.filter((refund) => !isOverpaymentKey(refund.idempotency_key)).map(({ amount }) => new Decimal(amount)),
  );
  if (refunded.lte(invoice.refunded_amount)) return;
  throw new ProviderError(
    'person',
    `${refunded.toFixed()} ${invoice.currency} of the payments of invoice ${invoice.id} were refunded, of which the price was ${invoice.refunded_amount}: correct the invoice at the provider`,
  );
}
