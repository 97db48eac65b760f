/** Exports the invoices finalized in the range, in that order; a voided one is included with its status. */

import type { Scope } from '../../../core/foundation/scope.ts';
import { type ExportedInvoice, INVOICE_COLUMNS } from '../../../core/platform/export/invoices.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { defineExportKind, type ExportInput } from './export-kind.ts';
import { readDatedPages } from './pages.ts';

export const invoicesExport = defineExportKind<ExportedInvoice>({
  reads: ['invoice', 'customer'],
  columns: INVOICE_COLUMNS,
  keys: { customer_id: ({ customer_id }) => customer_id },
  rows: readInvoices,
});

/** Also read by the export of their lines. */
export async function* readInvoices(
  { postgres }: Stores,
  scope: Scope,
  input: ExportInput,
): AsyncGenerator<readonly ExportedInvoice[]> {
  const pages = readDatedPages<InvoiceModel>(postgres, scope, {
    input,
    kind: 'invoice',
    id: 'invoices.id',
    list: ({ after, ...page }) => InvoiceModel.listFinal(scope, { ...page, after: after?.id ?? null }),
  });
  for await (const page of pages) {
    const ids = page.map(({ customer_id }) => customer_id);
    const customers = await CustomerModel.byId(scope, ids, postgres);
    yield page.map((invoice) => ({ ...invoice, customer: customers.get(invoice.customer_id) ?? null }));
  }
}
