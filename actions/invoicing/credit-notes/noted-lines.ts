/**
 * Lists the lines of final credit notes that credit these invoice lines. A draft reserves nothing, and a voided note has released its
 * amounts. Adjustments made by a subscription change are excluded, because the change has credit lines of its own for these amounts.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { CreditNoteLineItemModel } from '../../../storage/models/invoicing/credit-note-line-item.ts';

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
