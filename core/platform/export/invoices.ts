/** Columns of exported invoices (docs/rules/exports.md, "Invoices"). */

import { type Microseconds, toInstant, toUs } from '../../foundation/time/instant.ts';
import type { Invoice } from '../../invoicing/invoice/record.ts';
import { defineExportColumns } from './column.ts';

export type ExportedInvoice = Invoice & {
  readonly customer: { readonly external_id: string; readonly name: string } | null;
};

const { text, word, decimal, instant } = defineExportColumns<ExportedInvoice>();

export function toExportMicroseconds(timestamp: string | null | undefined): Microseconds | null {
  return timestamp ? toUs(toInstant(timestamp)) : null;
}

export const INVOICE_COLUMNS = [
  word('id', ({ id }) => id),
  text('invoice_number', (invoice) => invoice.invoice_number ?? null),
  word('customer_id', (invoice) => invoice.customer_id),
  text('customer_external_id', ({ customer }) => customer?.external_id ?? null),
  text('customer_name', ({ customer }) => customer?.name ?? null),
  word('subscription_id', (invoice) => invoice.subscription_id ?? null),
  word('invoice_type', (invoice) => invoice.invoice_type),
  word('invoice_status', (invoice) => invoice.invoice_status),
  word('payment_status', (invoice) => invoice.payment_status),
  word('billing_reason', (invoice) => invoice.billing_reason),
  word('currency', ({ currency }) => currency),
  decimal('subtotal', ({ subtotal }) => subtotal),
  decimal('total_discount', (invoice) => invoice.total_discount),
  decimal('total_prepaid_credits_applied', (invoice) => invoice.total_prepaid_credits_applied),
  decimal('total_tax', (invoice) => invoice.total_tax),
  decimal('total', ({ total }) => total),
  decimal('amount_due', (invoice) => invoice.amount_due),
  decimal('amount_paid', (invoice) => invoice.amount_paid),
  decimal('amount_remaining', (invoice) => invoice.amount_remaining),
  decimal('refunded_amount', (invoice) => invoice.refunded_amount),
  instant('period_start', (invoice) => toExportMicroseconds(invoice.period_start)),
  instant('period_end', (invoice) => toExportMicroseconds(invoice.period_end)),
  instant('due_date', (invoice) => toExportMicroseconds(invoice.due_date)),
  instant('paid_at', (invoice) => toExportMicroseconds(invoice.paid_at)),
  instant('voided_at', (invoice) => toExportMicroseconds(invoice.voided_at)),
  instant('finalized_at', (invoice) => toExportMicroseconds(invoice.finalized_at)),
  instant('created_at', (invoice) => toExportMicroseconds(invoice.created_at)),
  decimal('total_credits_applied_after_tax', (invoice) => invoice.total_credits_applied_after_tax),
];
