/**
 * The lines of credit notes that are final, of these invoice lines: a draft reserves nothing, a voided one has given back what it took. An
 * adjustment that a change made is left out, because the lines of the change say what was credited.
 */
import type { Scope } from '../../core/scope.ts';
import { CreditNoteModel } from '../../storage/models/credit-note.ts';
import { CreditNoteLineItemModel } from '../../storage/models/credit-note-line-item.ts';
import type { Database } from '../../storage/stores.ts';

export async function listNotedLines(
  scope: Scope,
  ids: readonly string[],
  database: Database,
): Promise<CreditNoteLineItemModel[]> {
  if (ids.length === 0) return [];
  const lines = await CreditNoteLineItemModel.in(scope, database).whereIn('invoice_line_item_id', [...ids]);
  const noteIds = lines.map(({ credit_note_id }) => credit_note_id);
  const notes = await CreditNoteModel.byId(scope, noteIds, database);
  return lines.filter(({ credit_note_id }) => {
    const note = notes.get(credit_note_id);
    return note?.credit_note_status === 'FINALIZED' && !note.change_invoice_id;
  });
}
