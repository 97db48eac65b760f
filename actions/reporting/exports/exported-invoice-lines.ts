/** Exports the lines of the invoices finalized in the range, in the order of invoices and of their lines. */

import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type ExportedInvoiceLine, INVOICE_LINE_COLUMNS } from '../../../core/platform/export/invoice-lines.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { defineExportKind, type ExportInput } from './export-kind.ts';
import { readInvoices } from './exported-invoices.ts';

export const invoiceLinesExport = defineExportKind<ExportedInvoiceLine>({
  reads: ['invoice', 'customer'],
  columns: INVOICE_LINE_COLUMNS,
  keys: { customer_id: ({ invoice }) => invoice.customer_id },
  rows: readInvoiceLines,
});

/** Number of invoices whose lines are in memory at a time. */
const AT_ONCE = 100;

async function* readInvoiceLines(
  stores: Stores,
  scope: Scope,
  input: ExportInput,
): AsyncGenerator<readonly ExportedInvoiceLine[]> {
  for await (const page of readInvoices(stores, scope, input))
    for (let from = 0; from < page.length; from += AT_ONCE) {
      const invoices = page.slice(from, from + AT_ONCE);
      const ids = invoices.map(({ id }) => id);
      const lines = await InvoiceLineItemModel.in(scope, stores.postgres)
        .whereIn('invoice_id', ids)
        .where('status', 'published')
        .orderBy(['position', 'id']);
      const byInvoice = groupBy(lines, ({ invoice_id }) => invoice_id);
      yield invoices.flatMap((invoice) =>
        (byInvoice.get(invoice.id) ?? []).map((line) => ({ invoice, line, customer: invoice.customer })),
      );
    }
}
