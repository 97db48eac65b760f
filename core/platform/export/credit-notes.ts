/** Columns of exported credit notes (docs/rules/exports.md, "Credit notes"). */
import type { CreditNote } from '../../invoicing/credit-note/record.ts';
import { defineExportColumns } from './column.ts';
import { toExportMicroseconds } from './invoices.ts';

export type ExportedCreditNote = CreditNote & {
  readonly customer: { readonly external_id: string; readonly name: string } | null;
  readonly invoice: { readonly invoice_number?: string | null | undefined } | null;
};

const { text, word, decimal, instant } = defineExportColumns<ExportedCreditNote>();

export const CREDIT_NOTE_COLUMNS = [
  word('id', ({ id }) => id),
  text('credit_note_number', (note) => note.credit_note_number),
  instant('finalized_at', (note) => toExportMicroseconds(note.finalized_at)),
  word('invoice_id', (note) => note.invoice_id),
  text('invoice_number', ({ invoice }) => invoice?.invoice_number ?? null),
  word('customer_id', (note) => note.customer_id),
  text('customer_external_id', ({ customer }) => customer?.external_id ?? null),
  text('customer_name', ({ customer }) => customer?.name ?? null),
  word('subscription_id', (note) => note.subscription_id ?? null),
  word('credit_note_status', (note) => note.credit_note_status),
  word('credit_note_type', (note) => note.credit_note_type),
  word('reason', ({ reason }) => reason),
  text('memo', ({ memo }) => memo),
  decimal('subtotal', ({ subtotal }) => subtotal),
  decimal('total_tax', (note) => note.total_tax),
  decimal('total_amount', (note) => note.total_amount),
  decimal('total_prepaid_credits_returned', (note) => note.total_prepaid_credits_returned),
  word('currency', ({ currency }) => currency),
  instant('voided_at', (note) => toExportMicroseconds(note.voided_at)),
  instant('created_at', (note) => toExportMicroseconds(note.created_at)),
];
