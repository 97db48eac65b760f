/** Fields of Zoho Books records that this service reads. Numbers are texts (exact-json.ts). */
import type { ReportedInvoice } from '../../core/payments/provider-payments.ts';

type SalesRecord = {
  readonly customer_id: string;
  readonly reference_number?: string;
  readonly currency_code: string;
  readonly status: string;
  readonly total: string;
  readonly line_items?: readonly { readonly item_total: string }[];
};
export type ZohoInvoice = SalesRecord & {
  readonly invoice_id: string;
  readonly balance: string;
  readonly payment_made?: string;
  readonly credits_applied?: string;
  readonly write_off_amount?: string;
  /** Page on which the customer sees the invoice. */
  readonly invoice_url?: string;
};
type ZohoCreditNote = SalesRecord & {
  readonly creditnote_id: string;
  /** Amount that is neither applied to an invoice nor refunded. */
  readonly balance: string;
};
type ZohoPayment = {
  readonly payment_id: string;
  readonly customer_id: string;
  readonly reference_number?: string;
  readonly currency_code: string;
  readonly amount: string;
  readonly invoices?: readonly { readonly invoice_id: string; readonly amount_applied: string }[];
};

export type ZohoRecords = {
  readonly contact: { readonly contact_id: string; readonly contact_name: string; readonly notes?: string };
  readonly invoice: ZohoInvoice;
  readonly payment: ZohoPayment;
  readonly creditnote: ZohoCreditNote;
};

/** A payment in the list of an invoice, with the amount that it applies to this invoice. */
export type InvoicePayment = {
  readonly payment_id: string;
  readonly amount: string;
  readonly date?: string;
  readonly reference_number?: string;
};
/** A credit note in the list of an invoice. */
export type InvoiceCredit = { readonly creditnote_id: string; readonly amount_applied: string };
export type ZohoCurrency = {
  readonly currency_id: string;
  readonly currency_code: string;
  /** Number of decimals of an amount. */
  readonly price_precision: string;
};

/** Statuses of invoices. Invoices with any other status are open. */
const STATUSES: Readonly<Record<string, ReportedInvoice['invoice_status']>> = {
  draft: 'draft',
  pending_approval: 'draft',
  approved: 'draft',
  sent: 'open',
  viewed: 'open',
  unpaid: 'open',
  overdue: 'open',
  partially_paid: 'open',
  paid: 'paid',
  void: 'void',
};

export function toInvoiceStatus({
  status,
  write_off_amount = '0',
}: Pick<ZohoInvoice, 'status' | 'write_off_amount'>): ReportedInvoice['invoice_status'] {
  const known = STATUSES[status] ?? 'open';
  return known === 'paid' && Number(write_off_amount) > 0 ? 'uncollectible' : known;
}
