/**
 * Voids open payments of an invoice that needs no more money, and pages that ask for more than remains
 * (docs/rules/payments.md, "What becomes of the invoice").
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { hasPaymentPage } from '../../../core/payments/applied-amount.ts';
import { OPEN } from '../../../core/payments/moves.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { type ChangeAuthor, emit } from '../../foundation/emit.ts';

/** Voids the open payments of an invoice, which `transaction` has locked. */
export async function voidOpenPayments(
  transaction: Transaction,
  { invoice, by }: { invoice: InvoiceModel; by: ChangeAuthor },
): Promise<void> {
  const open = await PaymentModel.in(invoice, transaction)
    .where({ destination_id: invoice.id, status: 'published' })
    .whereIn('payment_status', [...OPEN])
    .orderBy('id')
    .forUpdate();
  const now = by.now.toISOString();
  for (const payment of open.filter((one) => isNeedless(one, invoice))) {
    // Makes the payment due, so that the scheduler closes the page at its provider and ends its checkout outside this transaction.
    const next_attempt_at = hasPaymentPage(payment) || payment.checkout_session_id ? now : null;
    const changes = { payment_status: 'VOIDED' as const, voided_at: now, next_attempt_at, payment_url: null };
    const record = await PaymentModel.change(payment, changes, { by, database: transaction });
    await emit(transaction, 'payment.updated', { record, by });
  }
}

function isNeedless(payment: PaymentModel, { invoice_status, amount_remaining }: InvoiceModel): boolean {
  const isOver = invoice_status !== 'FINALIZED' || new Decimal(amount_remaining).lte(0);
  return isOver || (hasPaymentPage(payment) && new Decimal(payment.amount).gt(amount_remaining));
}
