/** What changes of a subscription gave back of lines that had been invoiced. */
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { InvoiceLineItemModel } from '../../storage/models/invoice-line-item.ts';
import type { Database } from '../../storage/stores.ts';

/** The lines that give back what stands on these, on invoices that are not void. */
export async function creditsOfLines(
  invoice: InvoiceModel,
  ids: readonly string[],
  database: Database,
): Promise<InvoiceLineItemModel[]> {
  const credits = await InvoiceLineItemModel.in(invoice, database)
    .where({ price_type: 'FIXED', status: 'published' })
    .whereIn('parent_line_item_id', [...ids])
    .where('amount', '<', 0);
  const invoice_ids = credits.map(({ invoice_id }) => invoice_id);
  const invoices = await InvoiceModel.byId(invoice, invoice_ids, database);
  return credits.filter(({ invoice_id }) => invoices.get(invoice_id)?.invoice_status !== 'VOIDED');
}
