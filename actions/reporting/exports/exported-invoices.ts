/** Exports the invoices finalized in the range, in that order; a voided one is included with its status. */

import type { Scope } from '../../../core/foundation/scope.ts';
import { formatUs } from '../../../core/foundation/time/instant.ts';
import { type ExportedInvoice, INVOICE_COLUMNS } from '../../../core/platform/export/invoices.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { defineExportKind, type ExportInput } from './export-kind.ts';
import { type ExportedRange, splitIntoFileParts } from './file-parts.ts';

export const invoicesExport = defineExportKind<ExportedInvoice>({
  reads: ['invoice', 'customer'],
  columns: INVOICE_COLUMNS,
  keys: { customer_id: ({ customer_id }) => customer_id },
  rows: readInvoices,
});

const PAGE = 1_000;

export async function* readInvoices(
  stores: Stores,
  scope: Scope,
  input: ExportInput,
): AsyncGenerator<readonly ExportedInvoice[]> {
  for (const part of splitIntoFileParts(scope, input, { kind: 'invoice', id: 'invoices.id' }))
    yield* readInvoicesPart(stores, scope, { ...input, ...part });
}

async function* readInvoicesPart(
  { postgres }: Stores,
  scope: Scope,
  { start_us, end_us, signal, only }: ExportInput & ExportedRange,
): AsyncGenerator<readonly ExportedInvoice[]> {
  for (let after: string | null = null; ; ) {
    signal.throwIfAborted();
    const page: InvoiceModel[] = await InvoiceModel.listFinal(scope, {
      from: formatUs(start_us),
      to: formatUs(end_us),
      only,
      after,
      limit: PAGE,
      database: postgres,
    });
    const customers = await CustomerModel.byId(
      scope,
      page.map(({ customer_id }) => customer_id),
      postgres,
    );
    yield page.map((invoice) => ({ ...invoice, customer: customers.get(invoice.customer_id) ?? null }));
    if (page.length < PAGE) return;
    after = page.at(-1)!.id;
  }
}
