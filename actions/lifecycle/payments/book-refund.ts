/** Records refunds in their payment (docs/rules/payments.md, "Refunds"). The caller has locked the payment. */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { RECEIVED } from '../../../core/payments/moves.ts';
import { isOverpaymentKey } from '../../../core/payments/record.ts';
import { computeOutcomeCheckAt } from '../../../core/payments/schedule.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentRefundModel } from '../../../storage/models/payments/payment-refund.ts';
import { type ChangeAuthor, emit } from '../../foundation/emit.ts';

export function listRefunds(payment: PaymentModel, database: Stores['postgres']): Promise<PaymentRefundModel[]> {
  return PaymentRefundModel.listBy(payment, { column: 'payment_id', value: payment.id }, database);
}

export function isOfProvider({ payment_gateway, gateway_payment_id }: PaymentModel): boolean {
  return Boolean(payment_gateway && gateway_payment_id);
}

export function isOverpaymentRefund({ idempotency_key }: PaymentRefundModel): boolean {
  return isOverpaymentKey(idempotency_key);
}

/** Updates the refunded amount of the payment, not its invoice. A payment whose money was never received retains its status. */
export async function updateRefunded(
  transaction: Transaction,
  { payment, amount, by }: { payment: PaymentModel; amount: string; by: ChangeAuthor },
): Promise<PaymentModel> {
  const refunded = new Decimal(payment.refunded_amount).plus(amount);
  const received_status = refunded.lte(0)
    ? 'SUCCEEDED'
    : refunded.gte(payment.amount)
      ? 'REFUNDED'
      : 'PARTIALLY_REFUNDED';
  const changes = {
    refunded_amount: refunded.toFixed(),
    refunded_at: refunded.gt(0) ? by.now.toISOString() : null,
    next_attempt_at: await computeRefundCheck(transaction, { payment, amount, by }),
    ...(RECEIVED.includes(payment.payment_status)
      ? { payment_status: received_status as PaymentModel['payment_status'] }
      : {}),
  };
  const record = await PaymentModel.change(payment, changes, { by, database: transaction });
  await emit(transaction, 'payment.updated', { record, by });
  return record;
}

/**
 * Returns the next processing time: soon for a new refund, to request it. A reversed refund needs no request, and a due FAILED payment
 * without refunds would count as one whose retries are exhausted. The end of a checkout remains due.
 */
async function computeRefundCheck(
  transaction: Transaction,
  { payment, amount, by }: { payment: PaymentModel; amount: string; by: ChangeAuthor },
): Promise<string | null> {
  if (!isOfProvider(payment)) return null;
  const isNew = new Decimal(amount).gt(0);
  if (isNew || (await hasPendingRefund(payment, transaction))) return computeOutcomeCheckAt(by.now).toISOString();
  return payment.checkout_session_id ? (payment.next_attempt_at ?? null) : null;
}

export async function hasPendingRefund(payment: PaymentModel, transaction: Transaction): Promise<boolean> {
  return (await listRefunds(payment, transaction)).some(({ refund_status }) => refund_status === 'pending');
}
