/**
 * The lines of an invoice with what was given back of each so far: by credit notes that are final, and by changes of the
 * subscription, whose credits name the line that they give back (docs/rules/credit-notes.md, "No more than was charged").
 */
import type { CreditableLine } from '../../core/credit-note/plan.ts';
import { Decimal, sumOf } from '../../core/decimal.ts';
import { groupBy } from '../../core/group-by.ts';
import { CreditNoteModel } from '../../storage/models/credit-note.ts';
import { CreditNoteLineItemModel } from '../../storage/models/credit-note-line-item.ts';
import type { InvoiceModel } from '../../storage/models/invoice.ts';
import { InvoiceLineItemModel } from '../../storage/models/invoice-line-item.ts';
import type { Database } from '../../storage/stores.ts';
import { creditsOfLines } from '../invoices/credits-of-lines.ts';

export type LineOfInvoice = CreditableLine & { readonly record: InvoiceLineItemModel };

export async function creditableLines(invoice: InvoiceModel, database: Database): Promise<LineOfInvoice[]> {
  const records = await InvoiceLineItemModel.in(invoice, database)
    .where({ invoice_id: invoice.id, status: 'published' })
    .orderBy(['position', 'id']);
  const noted = groupBy(await notedLines(invoice, database), (line) => line.invoice_line_item_id);
  const credits = await creditsOfLines(
    invoice,
    records.map(({ id }) => id),
    database,
  );
  const changed = groupBy(credits, (line) => line.parent_line_item_id ?? '');
  return records.map((record) => {
    const byNotes = noted.get(record.id) ?? [];
    const byChanges = changed.get(record.id) ?? [];
    return {
      id: record.id,
      record,
      amount: new Decimal(record.amount),
      discount: discountOf(record),
      tax: taxOf(record),
      credited: sumOf([
        ...byNotes.map(({ amount }) => new Decimal(amount)),
        ...byChanges.map((line) => new Decimal(line.amount).minus(discountOf(line)).negated()),
      ]),
      tax_credited: sumOf([
        ...byNotes.map(({ tax_amount }) => new Decimal(tax_amount)),
        ...byChanges.map((line) => taxOf(line).negated()),
      ]),
    };
  });
}

/** A draft reserves nothing, a voided one has given back what it took. */
async function notedLines(invoice: InvoiceModel, database: Database): Promise<CreditNoteLineItemModel[]> {
  const notes = await CreditNoteModel.in(invoice, database)
    .where({ invoice_id: invoice.id, credit_note_status: 'FINALIZED', status: 'published' })
    .select('id');
  if (notes.length === 0) return [];
  const ids = notes.map(({ id }) => id);
  return CreditNoteLineItemModel.in(invoice, database).whereIn('credit_note_id', ids);
}

function discountOf({ line_item_discount, invoice_level_discount }: InvoiceLineItemModel): Decimal {
  return new Decimal(line_item_discount).plus(invoice_level_discount);
}

function taxOf(line: InvoiceLineItemModel): Decimal {
  const { tax_amount } = line as { tax_amount?: string | null };
  return new Decimal(tax_amount ?? 0);
}
