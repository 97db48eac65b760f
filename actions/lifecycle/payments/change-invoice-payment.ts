/** Writes the paid amount of an invoice, after a payment or a manual update. */

import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { enqueueInvoiceAlertChecks } from '../../../storage/progress/alert-arrivals.ts';
import { type ChangeAuthor, emit } from '../../foundation/emit.ts';
import type { LockedInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { applyLowerRemaining } from '../effects.ts';

export async function changeInvoicePayment(
  stores: Stores,
  transaction: Transaction,
  { invoice, subscription, changes, by }: LockedInvoice & { changes: Partial<InvoiceModel>; by: ChangeAuthor },
): Promise<InvoiceModel> {
  const changed = await InvoiceModel.change(invoice, changes, { by, database: transaction });
  if (changed !== invoice) await emit(transaction, 'invoice.update.payment', { record: changed, by });
  if (changed.amount_remaining !== invoice.amount_remaining) await enqueueInvoiceAlertChecks(transaction, changed);
  await applyLowerRemaining(stores, transaction, { invoice: changed, subscription, by });
  return changed;
}
