/** What credit notes gave back of charges that a change would give back: beside what other changes did, so that nothing comes twice. */
import { asCredit } from '../../core/credit-note/as-credit.ts';
import { Decimal, sumOf } from '../../core/decimal.ts';
import { groupBy } from '../../core/group-by.ts';
import type { Scope } from '../../core/scope.ts';
import { CreditNoteModel } from '../../storage/models/credit-note.ts';
import { CreditNoteLineItemModel } from '../../storage/models/credit-note-line-item.ts';
import type { Database } from '../../storage/stores.ts';
import { type InvoicedLine, isCredit } from '../billing/gather-closed-charges.ts';

export async function notesAsCredits(
  database: Database,
  scope: Scope,
  invoiced: readonly InvoicedLine[],
): Promise<InvoicedLine[]> {
  const charges = invoiced.filter((one) => one.line.price_type === 'FIXED' && !isCredit(one));
  if (charges.length === 0) return [];
  const ids = charges.map(({ line }) => line.id);
  const lines = await CreditNoteLineItemModel.in(scope, database).whereIn('invoice_line_item_id', ids);
  const noteIds = lines.map(({ credit_note_id }) => credit_note_id);
  const notes = await CreditNoteModel.byId(scope, noteIds, database);
  const final = lines.filter(({ credit_note_id }) => notes.get(credit_note_id)?.credit_note_status === 'FINALIZED');
  const byLine = groupBy(final, ({ invoice_line_item_id }) => invoice_line_item_id);
  return charges.flatMap((charge) => {
    const [first, ...others] = byLine.get(charge.line.id) ?? [];
    if (!first) return [];
    const noted = sumOf([first, ...others].map(({ amount }) => new Decimal(amount)));
    return [{ ...charge, line: asCredit(charge.line, noted, first.currency) }];
  });
}
