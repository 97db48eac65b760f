/** Exports the lines of the invoices finalized in the range, in the order of invoices and of their lines. */

import type { Scope } from '../../../core/foundation/scope.ts';
import { type ExportedInvoiceLine, INVOICE_LINE_COLUMNS } from '../../../core/platform/export/invoice-lines.ts';
import type { ExportedInvoice } from '../../../core/platform/export/invoices.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { loadLines } from '../../../storage/models/invoicing/load-lines.ts';
import { defineExportKind, type ExportInput } from './export-kind.ts';
import { readInvoices } from './exported-invoices.ts';

export const invoiceLinesExport = defineExportKind<ExportedInvoiceLine>({
  reads: ['invoice', 'customer'],
  columns: INVOICE_LINE_COLUMNS,
  keys: { customer_id: ({ invoice }) => invoice.customer_id },
  rows: readInvoiceLines,
});

const INVOICES_PER_BATCH = 50;
/** Number of lines whose cells are in memory at a time. */
const LINES_PER_BATCH = 5_000;

/** Also read by the export of charges. */
export async function* readInvoiceLines(
  stores: Stores,
  scope: Scope,
  input: ExportInput,
): AsyncGenerator<readonly ExportedInvoiceLine[]> {
  for await (const page of readInvoices(stores, scope, input))
    for (let from = 0; from < page.length; from += INVOICES_PER_BATCH) {
      const lines = await loadExportedLines(stores, scope, page.slice(from, from + INVOICES_PER_BATCH));
      for (let at = 0; at < lines.length; at += LINES_PER_BATCH) yield lines.slice(at, at + LINES_PER_BATCH);
    }
}

async function loadExportedLines(
  { postgres }: Stores,
  scope: Scope,
  invoices: readonly ExportedInvoice[],
): Promise<ExportedInvoiceLine[]> {
  const ids = invoices.map(({ id }) => id);
  const lines = await loadLines(scope, { model: InvoiceLineItemModel, parent: 'invoice_id', ids }, postgres);
  return invoices.flatMap((invoice) =>
    (lines.get(invoice.id) ?? []).map((line) => ({ invoice, line, customer: invoice.customer })),
  );
}
