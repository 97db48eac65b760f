/** What waits to pay an invoice of which nothing remains, or that is void, pays nothing (docs/rules/payments.md, "What becomes of the invoice"). */
import { OPEN } from '../../core/payment/moves.ts';
import type { InvoiceModel } from '../../storage/models/invoice.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import type { Transaction } from '../../storage/stores.ts';
import { type Change, emit } from '../system-events/emit.ts';

/** `transaction` holds the invoice. */
export async function voidOpenPayments(
  transaction: Transaction,
  { invoice, by }: { invoice: InvoiceModel; by: Change['by'] },
): Promise<void> {
  const open = await PaymentModel.in(invoice, transaction)
    .where({ destination_id: invoice.id, status: 'published' })
    .whereIn('payment_status', [...OPEN])
    .orderBy('id')
    .forUpdate();
  const now = by.now.toISOString();
  for (const payment of open) {
    // A page that is open is closed at its provider, outside of this transaction.
    const next_attempt_at = payment.payment_method_type === 'PAYMENT_LINK' && payment.gateway_payment_id ? now : null;
    const changes = { payment_status: 'VOIDED' as const, voided_at: now, next_attempt_at, payment_url: null };
    const record = await PaymentModel.change(payment, changes, { by, database: transaction });
    await emit(transaction, 'payment.updated', { record, by });
  }
}
