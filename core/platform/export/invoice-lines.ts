/** Columns of exported invoice lines (docs/rules/exports.md, "Invoice lines"). */
import type { Invoice, InvoiceLineItem } from '../../invoicing/invoice/record.ts';
import { defineExportColumns } from './column.ts';
import { toExportMicroseconds } from './invoices.ts';

export type ExportedInvoiceLine = {
  readonly invoice: Invoice;
  readonly line: InvoiceLineItem;
  readonly customer: { readonly external_id: string; readonly name: string } | null;
};

const { text, word, decimal, instant } = defineExportColumns<ExportedInvoiceLine>();

export const INVOICE_LINE_COLUMNS = [
  word('id', ({ line }) => line.id),
  word('invoice_id', ({ invoice }) => invoice.id),
  text('invoice_number', ({ invoice }) => invoice.invoice_number ?? null),
  word('invoice_status', ({ invoice }) => invoice.invoice_status),
  instant('finalized_at', ({ invoice }) => toExportMicroseconds(invoice.finalized_at)),
  word('customer_id', ({ invoice }) => invoice.customer_id),
  text('customer_external_id', ({ customer }) => customer?.external_id ?? null),
  text('customer_name', ({ customer }) => customer?.name ?? null),
  word('subscription_id', ({ line }) => line.subscription_id ?? null),
  text('display_name', ({ line }) => line.display_name ?? null),
  text('plan_display_name', ({ line }) => line.plan_display_name ?? null),
  text('meter_display_name', ({ line }) => line.meter_display_name ?? null),
  word('price_id', ({ line }) => line.price_id ?? null),
  // Lines of earlier versions may have any text.
  text('price_type', ({ line }) => line.price_type ?? null),
  instant('period_start', ({ line }) => toExportMicroseconds(line.period_start)),
  instant('period_end', ({ line }) => toExportMicroseconds(line.period_end)),
  decimal('quantity', ({ line }) => line.quantity),
  decimal('amount', ({ line }) => line.amount),
  decimal('line_item_discount', ({ line }) => line.line_item_discount),
  decimal('invoice_level_discount', ({ line }) => line.invoice_level_discount),
  decimal('prepaid_credits_applied', ({ line }) => line.prepaid_credits_applied),
  decimal('tax_amount', ({ line }) => line.tax_amount),
  word('currency', ({ line }) => line.currency),
];
