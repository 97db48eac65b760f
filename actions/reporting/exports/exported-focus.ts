/** Exports the lines of the invoices finalized in the range as charges of FOCUS. A voided invoice charges nothing, so it is omitted. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { FOCUS_COLUMNS, type FocusCharge, listFocusCharges } from '../../../core/platform/export/focus.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { loadSeller } from '../../invoicing/documents/printed-by.ts';
import { defineExportKind, type ExportInput } from './export-kind.ts';
import { readInvoiceLines } from './exported-invoice-lines.ts';

export const focusExport = defineExportKind<FocusCharge>({
  reads: ['invoice', 'customer'],
  columns: FOCUS_COLUMNS,
  keys: { customer_id: ({ line }) => line.customer_id },
  rows: readCharges,
});

async function* readCharges(stores: Stores, scope: Scope, input: ExportInput): AsyncGenerator<readonly FocusCharge[]> {
  const { postgres: database } = stores;
  const { tenant_id } = scope;
  const settings = await loadSetting(scope, 'invoice_pdf_config', database);
  const { name: seller } = await loadSeller(settings, { tenant_id, database });
  for await (const lines of readInvoiceLines(stores, scope, input))
    yield lines.flatMap(({ invoice, line, customer }) =>
      invoice.invoice_status === 'VOIDED' ? [] : listFocusCharges(line, { seller, invoice, customer }),
    );
}
