/**
 * Changes the invoice of a credit note; the system event depends on whether the payment or the amounts of the invoice
 * changed.
 */
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { enqueueInvoiceAlertChecks } from '../../../storage/progress/alert-arrivals.ts';
import { emit } from '../../foundation/emit.ts';

export async function changeInvoice(
  transaction: Transaction,
  invoice: InvoiceModel,
  { changes, author }: { changes: Partial<InvoiceModel>; author: Author },
): Promise<InvoiceModel> {
  const changed = await InvoiceModel.change(invoice, changes, { by: author, database: transaction });
  const name = changed.payment_status === invoice.payment_status ? 'invoice.update' : 'invoice.update.payment';
  await emit(transaction, name, { record: changed, by: author });
  if (changed.amount_remaining !== invoice.amount_remaining) await enqueueInvoiceAlertChecks(transaction, changed);
  return changed;
}
