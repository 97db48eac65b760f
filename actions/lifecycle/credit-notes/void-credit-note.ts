/** Voids a credit note: a draft is discarded, and an adjustment's amount is due again (docs/rules/credit-notes.md, "Voiding a note"). */

import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { computeLineRemainder } from '../../../core/invoicing/credit-note/creditable.ts';
import { checkCanVoidNote, planUncreditedInvoice } from '../../../core/invoicing/credit-note/effect.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { CreditNoteLineItemModel } from '../../../storage/models/invoicing/credit-note-line-item.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { emit } from '../../foundation/emit.ts';
import { changeInvoice } from '../../invoicing/credit-notes/change-invoice.ts';
import { loadCreditableLines } from '../../invoicing/credit-notes/creditable-lines.ts';
import { listLineCredits } from '../../invoicing/invoices/credits-of-lines.ts';
import { lockNote } from './finalize-credit-note.ts';

export async function voidCreditNote(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<CreditNoteModel> {
  return stores.postgres.transaction(async (transaction) => {
    const { locked, note } = await lockNote(transaction, scope, id);
    checkCanVoidNote(note);
    if (note.credit_note_status === 'FINALIZED') await checkNothingTook(transaction, { note, invoice: locked.invoice });
    if (note.credit_note_status === 'FINALIZED')
      await changeInvoice(transaction, locked.invoice, {
        changes: planUncreditedInvoice(locked.invoice, note),
        author,
      });
    const changes = { credit_note_status: 'VOIDED' as const, voided_at: author.now.toISOString() };
    const voided = await CreditNoteModel.change(note, changes, { by: author, database: transaction });
    await emit(transaction, 'credit_note.updated', { record: voided, by: author });
    return voided;
  });
}

/**
 * Throws if a later change of the subscription depends on the note. The change credited only the part of a line that the note had left, so
 * without the note the customer would pay for time that was not delivered.
 */
async function checkNothingTook(
  transaction: Transaction,
  { note, invoice }: { readonly note: CreditNoteModel; readonly invoice: InvoiceModel },
): Promise<void> {
  const noted = await CreditNoteLineItemModel.in(note, transaction).where({ credit_note_id: note.id });
  const ids = new Set(noted.map(({ invoice_line_item_id }) => invoice_line_item_id));
  const exhausted = (await loadCreditableLines(invoice, transaction)).filter(
    (line) => ids.has(line.id) && computeLineRemainder(line).amount.isZero(),
  );
  const credits = await listLineCredits(
    invoice,
    exhausted.map(({ id }) => id),
    transaction,
  );
  const later = credits.find(({ created_at }) => toInstant(created_at) >= toInstant(note.finalized_at!));
  if (later)
    throw notAllowed('a later change gave back all that this credit note had left of a line: it cannot be voided', {
      invoice_id: later.invoice_id,
    });
}
