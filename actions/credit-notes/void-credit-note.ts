/** Voids a credit note: a draft is given up, and what an adjustment took off is due again (docs/rules/credit-notes.md, "Voiding a note"). */
import { checkNoteVoidable, uncreditedInvoice } from '../../core/credit-note/effect.ts';
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { CreditNoteModel } from '../../storage/models/credit-note.ts';
import type { Stores } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';
import { changeInvoice } from './change-invoice.ts';
import { holdNote } from './finalize-credit-note.ts';

export async function voidCreditNote(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<CreditNoteModel> {
  return stores.postgres.transaction(async (transaction) => {
    const { held, note } = await holdNote(transaction, scope, id);
    checkNoteVoidable(note);
    if (note.credit_note_status === 'FINALIZED')
      await changeInvoice(transaction, held.invoice, { changes: uncreditedInvoice(held.invoice, note), author });
    const changes = { credit_note_status: 'VOIDED' as const, voided_at: author.now.toISOString() };
    const voided = await CreditNoteModel.change(note, changes, { by: author, database: transaction });
    await emit(transaction, 'credit_note.updated', { record: voided, by: author });
    return voided;
  });
}
