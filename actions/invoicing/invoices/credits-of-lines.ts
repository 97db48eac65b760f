/** Lines of other invoices that credit or correct invoiced lines. */
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { InvoiceStatus } from '../../../core/invoicing/invoice/record.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';

/** Lists the credit lines that subscription changes made for these fixed lines, on invoices that are not void. */
export async function listLineCredits(
  invoice: InvoiceModel,
  ids: readonly string[],
  database: Database,
): Promise<InvoiceLineItemModel[]> {
  const lines = await listLinesAbout(invoice, { ids, invoice_statuses: ['DRAFT', 'FINALIZED', 'SKIPPED'] }, database);
  return lines.filter(({ price_type, amount }) => price_type === 'FIXED' && new Decimal(amount).isNegative());
}

/** Lists the lines with which other invoices of this state correct these usage lines after late or corrected events. */
export async function listLineCorrections(
  invoice: InvoiceModel,
  ids: readonly string[],
  { invoice_status, database }: { invoice_status: 'DRAFT' | 'FINALIZED'; database: Database },
): Promise<InvoiceLineItemModel[]> {
  const lines = await listLinesAbout(invoice, { ids, invoice_statuses: [invoice_status] }, database);
  return lines.filter(({ price_type, invoice_id }) => price_type === 'USAGE' && invoice_id !== invoice.id);
}

type LinesAboutInput = { readonly ids: readonly string[]; readonly invoice_statuses: readonly InvoiceStatus[] };

async function listLinesAbout(invoice: InvoiceModel, { ids, invoice_statuses }: LinesAboutInput, database: Database) {
  const lines = await InvoiceLineItemModel.in(invoice, database)
    .where({ status: 'published' })
    .whereIn('parent_line_item_id', [...ids])
    .orderBy(['created_at', 'id']);
  const invoice_ids = lines.map(({ invoice_id }) => invoice_id);
  const invoices = await InvoiceModel.byId(invoice, invoice_ids, database);
  return lines.filter(({ invoice_id }) => {
    const status = invoices.get(invoice_id)?.invoice_status;
    return status !== undefined && invoice_statuses.includes(status);
  });
}
