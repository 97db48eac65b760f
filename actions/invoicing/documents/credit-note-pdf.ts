/** The PDF of a credit note (docs/rules/documents.md, "Credit notes"), rendered for each request. */
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { computeIncludedTax } from '../../../core/invoicing/credit-note/included-tax.ts';
import { buildCreditNoteDocument, type CreditNoteDocumentInput } from '../../../core/invoicing/document/credit-note.ts';
import { renderPdf } from '../../../integrations/pdf/render.ts';
import type { Database, Postgres } from '../../../storage/foundation/stores.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { CreditNoteLineItemModel } from '../../../storage/models/invoicing/credit-note-line-item.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
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
    included_tax: await loadIncludedTax(database, note, lines),
    customer: await loadReceiver(invoice, database),
    seller: await loadSeller(settings, { tenant_id, database }),
    settings,
    timezone: await loadInvoiceTimezone(invoice, note, database),
  };
}

/** Loads the included tax of the note's amounts. Earlier notes count even if they were voided since, so that a printed share never changes. */
async function loadIncludedTax(
  database: Database,
  note: CreditNoteModel,
  lines: readonly CreditNoteLineItemModel[],
): Promise<Decimal> {
  const ids = lines.map(({ invoice_line_item_id }) => invoice_line_item_id);
  const charged = await InvoiceLineItemModel.byId(note, ids, database);
  const final = await CreditNoteModel.in(note, database)
    .where({ invoice_id: note.invoice_id })
    .whereNot('id', note.id)
    .whereNotNull('finalized_at');
  const earlier = final.filter((other) => isFinalBefore(other, note)).map(({ id }) => id);
  const credited = await CreditNoteLineItemModel.in(note, database).whereIn('credit_note_id', earlier);
  const before = groupBy(credited, ({ invoice_line_item_id }) => invoice_line_item_id);
  return sumDecimals(
    lines.flatMap(({ invoice_line_item_id: id, amount }) => {
      const line = charged.get(id);
      const amounts = (before.get(id) ?? []).map((other) => new Decimal(other.amount));
      return line ? [computeIncludedTax(line, { amount: new Decimal(amount), before: sumDecimals(amounts) })] : [];
    }),
  );
}

function isFinalBefore(other: CreditNoteModel, { finalized_at, id }: CreditNoteModel): boolean {
  if (!finalized_at) return true;
  const [one, two] = [toInstant(other.finalized_at!), toInstant(finalized_at)];
  return one === two ? other.id < id : one < two;
}
