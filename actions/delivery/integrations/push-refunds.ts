/**
 * Pushes the refunds of a pushed payment as credit notes, and withdraws the credit notes of refunds that have failed since
 * (docs/integrations/README.md, "Money after the invoice"). A refund has no mapping: the provider finds its credit note by the id of the
 * refund, so an interrupted push or withdrawal is repeated without harm.
 */
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { isOverpaymentKey, type PaymentRefund } from '../../../core/payments/record.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentRefundModel } from '../../../storage/models/payments/payment-refund.ts';
import { withClaim } from '../../foundation/connections/push-claims.ts';
import { loadPushKey, type PushTarget } from '../../foundation/connections/push-record.ts';
import type { SentMoney } from './intend-money.ts';
import { listReceivedPayments } from './sent-invoice.ts';

type SentPayment = { readonly payment: PaymentModel; readonly sent: SentMoney };

/**
 * Pushes refunds before it withdraws failed ones, because a refund may fail while another job creates its credit note. If the provider
 * refuses one of the two, the other is still done.
 */
export async function pushRefunds(stores: Postgres, sent: SentPayment, target: PushTarget): Promise<void> {
  const refusals = await collectRefusal(() => pushMadeRefunds(stores, sent, target));
  const failed = await listEndedRefunds(stores, sent.payment, 'failed');
  for (const refund of failed)
    refusals.push(...(await collectRefusal(() => withdrawRefund(stores, { ...sent, refund }, target))));
  if (refusals.length > 0) throw new ProviderError('person', refusals.join('; '));
}

async function collectRefusal(exchange: () => Promise<void>): Promise<string[]> {
  try {
    await exchange();
    return [];
  } catch (error) {
    if (!(error instanceof ProviderError) || error.error_class !== 'person' || error.is_unauthorized) throw error;
    return [error.message];
  }
}

/**
 * Lists the payment's refunds with this status, except those of overpaid amounts. A pending refund is pushed after its end, which emits
 * `payment.updated`.
 */
async function listEndedRefunds(
  { postgres }: Postgres,
  payment: PaymentModel,
  refund_status: PaymentRefund['refund_status'],
): Promise<PaymentRefundModel[]> {
  const refunds = await PaymentRefundModel.in(payment, postgres)
    .where({ payment_id: payment.id, refund_status, status: 'published' })
    .orderBy('id');
  return refunds.filter(({ idempotency_key }) => !isOverpaymentKey(idempotency_key));
}

async function pushMadeRefunds(stores: Postgres, { payment, sent }: SentPayment, target: PushTarget): Promise<void> {
  const refunds = await listEndedRefunds(stores, payment, 'succeeded');
  if (refunds.length === 0) return;
  await checkRefunded(stores, payment);
  const exchanged = { ...(await loadPushKey(stores, sent.mapping)), is_key_renewed: true };
  for (const { id, amount, reason } of refunds) {
    const line = { description: reason ?? 'Refund', amount, line_item_id: null, period_start: null, period_end: null };
    const note = {
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
    } as const;
    await withClaim(stores, sent.mapping, () => target.call(async (account) => account.pushCreditNote?.(note)));
  }
}

/** Voids the credit note of a failed refund. No effect if the refund was never pushed, or was withdrawn already. */
async function withdrawRefund(
  stores: Postgres,
  { payment, sent, refund }: SentPayment & { refund: PaymentRefundModel },
  { call }: PushTarget,
): Promise<void> {
  const { key_created_at } = await loadPushKey(stores, sent.mapping);
  const { provider_customer_id, provider_invoice_id } = sent;
  const searched = { credit_note_id: refund.id, provider_customer_id, provider_invoice_id, key_created_at };
  const found = await call(async (account) => (await account.findCreditNote?.(searched)) ?? null);
  if (found === null) return;
  const [refusal] = await collectRefusal(() =>
    call(async (account) => account.voidCreditNote!(found.provider_entity_id, `${refund.id}:void`)),
  );
  if (refusal === undefined) return;
  throw new ProviderError(
    'person',
    `the refund of ${refund.amount} ${payment.currency} of payment ${payment.id} has failed, but ${found.provider_entity_id} is still counted at the provider: ${refusal}`,
  );
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
