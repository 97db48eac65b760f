/** Ends the attempts to close a void page of an archived connection, and notes in its payment that a customer can still pay there. */
import { describeAbandonedPage } from '../../core/payments/page-closing.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { PaymentModel } from '../../storage/models/payments/payment.ts';
import { type ChangeAuthor, emit } from '../foundation/emit.ts';

/** The caller has locked the payment. */
export async function cancelPageClosing(
  transaction: Transaction,
  page: PaymentModel,
  { gateway, by }: { gateway: string; by: ChangeAuthor },
): Promise<PaymentModel> {
  const changes = {
    next_attempt_at: null,
    // A number above 0 marks the error message as one about the open page, so that a later payment on the page clears it.
    close_failures: Math.max(1, page.close_failures),
    error_message: describeAbandonedPage(page, gateway),
  };
  const record = await PaymentModel.change(page, changes, { by, database: transaction });
  await emit(transaction, 'payment.updated', { record, by });
  return record;
}
