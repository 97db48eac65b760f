/** Exports the payments whose money was received in the range, in that order; a refund of one is in its columns. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { type ExportedPayment, PAYMENT_COLUMNS } from '../../../core/platform/export/payments.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { listReceivedPayments } from '../../../storage/models/reporting/exported-records.ts';
import { defineExportKind, type ExportInput } from './export-kind.ts';
import { readDatedPages } from './pages.ts';

export const paymentsExport = defineExportKind<ExportedPayment>({
  reads: ['payment', 'customer'],
  columns: PAYMENT_COLUMNS,
  keys: { customer_id: ({ customer_id }) => customer_id },
  rows: readPayments,
});

async function* readPayments(
  { postgres }: Stores,
  scope: Scope,
  input: ExportInput,
): AsyncGenerator<readonly ExportedPayment[]> {
  const pages = readDatedPages<PaymentModel>(postgres, scope, {
    input,
    kind: 'payment',
    id: 'payments.id',
    list: (page) => listReceivedPayments(scope, page),
  });
  for await (const page of pages) {
    const customerIds = page.map(({ customer_id }) => customer_id);
    const invoiceIds = page.map(({ destination_id }) => destination_id);
    const [customers, invoices] = await Promise.all([
      CustomerModel.byId(scope, customerIds, postgres),
      InvoiceModel.byId(scope, invoiceIds, postgres),
    ]);
    yield page.map((payment) => ({
      ...payment,
      invoice_number: invoices.get(payment.destination_id)?.invoice_number ?? null,
      customer: customers.get(payment.customer_id) ?? null,
    }));
  }
}
