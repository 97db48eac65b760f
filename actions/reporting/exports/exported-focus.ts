/** Exports the lines of the invoices finalized in the range as charges of FOCUS. A voided invoice charges nothing, so it is omitted. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { FOCUS_COLUMNS, type FocusCharge, listFocusCharges } from '../../../core/platform/export/focus.ts';
import type { ExportedInvoice } from '../../../core/platform/export/invoices.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { loadLines } from '../../../storage/models/invoicing/load-lines.ts';
import { loadSeller } from '../../invoicing/documents/printed-by.ts';
import { defineExportKind, type ExportInput } from './export-kind.ts';
import { readInvoices } from './exported-invoices.ts';

export const focusExport = defineExportKind<FocusCharge>({
  reads: ['invoice', 'customer'],
  columns: FOCUS_COLUMNS,
  keys: { customer_id: ({ line }) => line.customer_id },
  rows: readCharges,
});

const INVOICES_PER_BATCH = 50;

async function* readCharges(stores: Stores, scope: Scope, input: ExportInput): AsyncGenerator<readonly FocusCharge[]> {
  const { postgres: database } = stores;
  const { tenant_id } = scope;
  const settings = await loadSetting(scope, 'invoice_pdf_config', database);
  const { name: seller } = await loadSeller(settings, { tenant_id, database });
  for await (const page of readInvoices(stores, scope, input)) {
    const charging = page.filter(({ invoice_status }) => invoice_status !== 'VOIDED');
    for (let from = 0; from < charging.length; from += INVOICES_PER_BATCH)
      yield await loadCharges(stores, scope, { invoices: charging.slice(from, from + INVOICES_PER_BATCH), seller });
  }
}

async function loadCharges(
  { postgres }: Stores,
  scope: Scope,
  { invoices, seller }: { invoices: readonly ExportedInvoice[]; seller: string },
): Promise<FocusCharge[]> {
  const ids = invoices.map(({ id }) => id);
  const lines = await loadLines(scope, { model: InvoiceLineItemModel, parent: 'invoice_id', ids }, postgres);
  return invoices.flatMap((invoice) => {
    const { customer } = invoice;
    return (lines.get(invoice.id) ?? []).flatMap((line) => listFocusCharges(line, { seller, invoice, customer }));
  });
}
