/** Reverses refunds that have failed (docs/rules/payments.md, "Refunds"). */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { applyPaidAmount, applyRefund } from '../../../core/invoicing/invoice/payment-status.ts';
import { RECEIVED } from '../../../core/payments/moves.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentRefundModel } from '../../../storage/models/payments/payment-refund.ts';
import { type ChangeAuthor, emit } from '../../foundation/emit.ts';
import { loadCharges } from '../../invoicing/credit-notes/load-charges.ts';
import type { LockedPayment } from '../../payments/lock-payment.ts';
import { isOverpaymentRefund, updateRefunded } from './book-refund.ts';
import { changeInvoicePayment } from './change-invoice-payment.ts';
import { creditFailedRefund } from './credit-failed-refund.ts';

type ReversedRefund = LockedPayment & { refund: PaymentRefundModel; error: string; by: ChangeAuthor };

/** Reverses a refund that had succeeded: the bank of the customer has returned the money to the provider. */
export async function reverseMadeRefund(
  stores: Stores,
  transaction: Transaction,
  { refund, error, ...locked }: ReversedRefund,
): Promise<PaymentModel> {
  const { by } = locked;
  const failed = { refund_status: 'failed' as const, error_message: error };
  await PaymentRefundModel.change(refund, failed, { by, database: transaction });
  const error_message = `a refund of ${refund.amount} ${locked.payment.currency} has failed after it was made: ${error}`;
  const payment = await PaymentModel.change(locked.payment, { error_message }, { by, database: transaction });
  return reverseRefund(stores, transaction, { ...locked, payment, refund, error });
}

/**
 * Reverses a failed refund by booking its negative amount. If an overpaid amount could not be refunded, the invoice counts it as paid. If
 * the invoice is void, the amount is credited to a wallet.
 */
export async function reverseRefund(
  stores: Stores,
  transaction: Transaction,
  { refund, error, ...locked }: ReversedRefund,
): Promise<PaymentModel> {
  const { by, invoice, subscription } = locked;
  const amount = new Decimal(refund.amount).negated().toFixed();
  const payment = await updateRefunded(transaction, { ...locked, amount });
  if (invoice.invoice_status === 'VOIDED' && RECEIVED.includes(payment.payment_status)) {
    await creditFailedRefund(transaction, { invoice, refund, by });
    return payment;
  }
  if (!isOverpaymentRefund(refund)) {
    const { by_notes } = await loadCharges(invoice, transaction);
    const changes = applyRefund(invoice, { refunded: amount, by_notes, at: by.now });
    await changeInvoicePayment(stores, transaction, { invoice, subscription, changes, by });
    return payment;
  }
  if (!RECEIVED.includes(payment.payment_status)) {
    // Money of a closed payment pays no invoice, and the refund is not repeated: a person has to resolve it.
    const error_message = `${refund.amount} ${payment.currency} was received and could not be refunded: ${error}`;
    const record = await PaymentModel.change(payment, { error_message }, { by, database: transaction });
    await emit(transaction, 'payment.updated', { record, by });
    return record;
  }
  const changes = applyPaidAmount(invoice, refund.amount, by.now);
  await changeInvoicePayment(stores, transaction, { invoice, subscription, changes, by });
  return payment;
}
