/** Exports the credit notes finalized in the range, in that order; a voided one is included with its status. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { CREDIT_NOTE_COLUMNS, type ExportedCreditNote } from '../../../core/platform/export/credit-notes.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import type { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { listFinalCreditNotes } from '../../../storage/models/reporting/exported-records.ts';
import { defineExportKind, type ExportInput } from './export-kind.ts';
import { readDatedPages } from './pages.ts';

export const creditNotesExport = defineExportKind<ExportedCreditNote>({
  reads: ['creditnote', 'customer'],
  columns: CREDIT_NOTE_COLUMNS,
  keys: { customer_id: ({ customer_id }) => customer_id },
  rows: readCreditNotes,
});

async function* readCreditNotes(
  { postgres }: Stores,
  scope: Scope,
  input: ExportInput,
): AsyncGenerator<readonly ExportedCreditNote[]> {
  const pages = readDatedPages<CreditNoteModel>(postgres, scope, {
    input,
    kind: 'credit_note',
    id: 'credit_notes.id',
    list: (page) => listFinalCreditNotes(scope, page),
  });
  for await (const page of pages) {
    const customerIds = page.map(({ customer_id }) => customer_id);
    const invoiceIds = page.map(({ invoice_id }) => invoice_id);
    const [customers, invoices] = await Promise.all([
      CustomerModel.byId(scope, customerIds, postgres),
      InvoiceModel.byId(scope, invoiceIds, postgres),
    ]);
    yield page.map((note) => ({
      ...note,
      customer: customers.get(note.customer_id) ?? null,
      invoice: invoices.get(note.invoice_id) ?? null,
    }));
  }
}
