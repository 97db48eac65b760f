/** Loads the lines of an invoice, with all amounts credited or refunded so far, to limit a further credit. */

import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { CreditableLine } from '../../../core/invoicing/credit-note/creditable.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { loadCreditableLines } from './creditable-lines.ts';

export type Charges = { readonly lines: readonly CreditableLine[]; readonly by_notes: Decimal };

export async function loadCharges(invoice: InvoiceModel, database: Database): Promise<Charges> {
  return { lines: await loadCreditableLines(invoice, database), by_notes: await sumRefundNotes(invoice, database) };
}

/**
 * Sums the part of `refunded_amount` that credit notes returned: the total of each refund, and of each adjustment the prepaid credits that
 * returned to their lots.
 */
async function sumRefundNotes(invoice: InvoiceModel, database: Database): Promise<Decimal> {
  const notes = await CreditNoteModel.in(invoice, database).where({
    invoice_id: invoice.id,
    credit_note_status: 'FINALIZED',
    status: 'published',
  });
  return sumDecimals(
    notes.map((note) =>
      note.credit_note_type === 'REFUND'
        ? new Decimal(note.total_amount)
        : new Decimal(note.total_prepaid_credits_returned),
    ),
  );
}
