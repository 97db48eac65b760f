/**
 * Credits the amount of a refund that failed after its invoice was voided. The void had returned only the payments that were not refunded,
 * so this amount also goes to the prepaid wallet (docs/rules/payments.md, "Refunds").
 */
import { toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import { planFailedRefund } from '../../../core/invoicing/invoice/void.ts';
import { RECEIVED } from '../../../core/payments/moves.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentRefundModel } from '../../../storage/models/payments/payment-refund.ts';
import { returnCredits } from '../../credits/wallets/return-credits.ts';
import { type ChangeAuthor, emit } from '../../foundation/emit.ts';
import { isOverpaymentRefund } from './book-refund.ts';

type CreditedRefund = {
  readonly invoice: InvoiceModel;
  readonly refund: PaymentRefundModel;
  readonly by: ChangeAuthor;
};

/** Credits the failed refund. The caller has locked the void invoice, and the refund has the status `failed` already. */
export async function creditFailedRefund(
  transaction: Transaction,
  { invoice, refund, by }: CreditedRefund,
): Promise<void> {
  const changes = planFailedRefund(invoice, {
    refunded: new Decimal(refund.amount),
    uncounted: await computeUncounted(transaction, invoice),
  });
  const changed = await InvoiceModel.change(invoice, changes, { by, database: transaction });
  await emit(transaction, 'invoice.update.payment', { record: changed, by });
  await returnCredits(transaction, invoice, {
    prepaid: ZERO,
    rest: new Decimal(refund.amount),
    transaction_reason: 'INVOICE_VOID_REFUND',
    reference_type: 'INVOICE',
    reference_id: invoice.id,
    idempotency_key: toOwnKey('failed_refund', refund.id),
    description: `A refund failed after invoice ${invoice.invoice_number ?? invoice.id} was voided`,
    metadata: null,
    author: { user_id: 'user_id' in by ? by.user_id : '', now: by.now },
  });
}

/** Computes the received money that `amount_paid` does not contain, less refunds of overpaid amounts that did not fail. */
async function computeUncounted(transaction: Transaction, invoice: InvoiceModel): Promise<Decimal> {
  const payments = await PaymentModel.in(invoice, transaction)
    .where({ destination_id: invoice.id, status: 'published' })
    .whereIn('payment_status', [...RECEIVED]);
  const refunds = await PaymentRefundModel.in(invoice, transaction)
    .whereIn(
      'payment_id',
      payments.map(({ id }) => id),
    )
    .whereNot('refund_status', 'failed');
  const overpaid = refunds.filter(isOverpaymentRefund);
  const { amount_paid, paid_by_hand, total_credits_applied_after_tax: by_credits } = invoice;
  return sumAmounts(payments)
    .minus(sumAmounts(overpaid))
    .minus(new Decimal(amount_paid).minus(paid_by_hand).minus(by_credits ?? '0'));
}

function sumAmounts(records: readonly { readonly amount: string }[]): Decimal {
  return sumDecimals(records.map(({ amount }) => new Decimal(amount)));
}
