/** The PDF of a credit note (docs/rules/documents.md, "Credit notes"), rendered for each request. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { buildCreditNoteDocument, type CreditNoteDocumentInput } from '../../../core/invoicing/document/credit-note.ts';
import { renderPdf } from '../../../integrations/pdf/render.ts';
import type { Database, Postgres } from '../../../storage/foundation/stores.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { CreditNoteLineItemModel } from '../../../storage/models/invoicing/credit-note-line-item.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { loadInvoiceTimezone, loadReceiver, loadSeller } from './printed-by.ts';
import { loadPrintedTaxes } from './printed-taxes.ts';

export type DocumentFile = { readonly name: string; readonly bytes: Buffer };

export async function loadCreditNotePdf(
  { postgres }: Postgres,
  scope: Scope,
  { id, fonts }: { readonly id: string; readonly fonts: string | null },
): Promise<DocumentFile> {
  const note = await CreditNoteModel.fetch(scope, id, { database: postgres });
  const document = buildCreditNoteDocument(await gatherCreditNoteDocument(postgres, note));
  const bytes = await renderPdf(document, { fonts, asker: scope.tenant_id });
  return { name: `${note.credit_note_number}.pdf`, bytes };
}

async function gatherCreditNoteDocument(database: Database, note: CreditNoteModel): Promise<CreditNoteDocumentInput> {
  const { tenant_id } = note;
  const lines = await CreditNoteLineItemModel.in(note, database)
    .where({ credit_note_id: note.id, status: 'published' })
    .orderBy('position');
  const invoice = await InvoiceModel.fetch(note, note.invoice_id, { database });
  const settings = await loadSetting(note, 'invoice_pdf_config', database);
  return {
    note,
    lines,
    invoice,
    taxes: await loadPrintedTaxes(invoice, database),
    customer: await loadReceiver(invoice, database),
    seller: await loadSeller(settings, { tenant_id, database }),
    settings,
    timezone: await loadInvoiceTimezone(invoice, note, database),
  };
}
