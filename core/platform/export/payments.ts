/** Columns of exported payments (docs/rules/exports.md, "Payments"). */
import type { Payment } from '../../payments/record.ts';
import { defineExportColumns } from './column.ts';
import { toExportMicroseconds } from './invoices.ts';

export type ExportedPayment = Payment & {
  readonly customer: { readonly external_id: string; readonly name: string } | null;
};

const { text, word, decimal, instant } = defineExportColumns<ExportedPayment>();

export const PAYMENT_COLUMNS = [
  word('id', ({ id }) => id),
  instant('succeeded_at', (payment) => toExportMicroseconds(payment.succeeded_at)),
  word('customer_id', (payment) => payment.customer_id),
  text('customer_external_id', ({ customer }) => customer?.external_id ?? null),
  text('customer_name', ({ customer }) => customer?.name ?? null),
  word('invoice_id', (payment) => payment.destination_id),
  text('invoice_number', (payment) => payment.invoice_number ?? null),
  word('payment_method_type', (payment) => payment.payment_method_type),
  word('payment_gateway', (payment) => payment.payment_gateway ?? null),
  text('gateway_payment_id', (payment) => payment.gateway_payment_id ?? null),
  word('payment_status', (payment) => payment.payment_status),
  decimal('amount', ({ amount }) => amount),
  decimal('refunded_amount', (payment) => payment.refunded_amount),
  word('currency', ({ currency }) => currency),
  instant('refunded_at', (payment) => toExportMicroseconds(payment.refunded_at)),
  instant('created_at', (payment) => toExportMicroseconds(payment.created_at)),
  instant('voided_at', (payment) => toExportMicroseconds(payment.voided_at)),
];
