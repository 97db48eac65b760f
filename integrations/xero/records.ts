/** Records of Xero's accounting API, with the fields that are read. Amounts are texts (exact-json.ts). */

type Failable = {
  readonly HasErrors?: boolean;
  readonly HasValidationErrors?: boolean;
  readonly StatusAttributeString?: string;
  readonly ValidationErrors?: readonly { readonly Message?: string }[];
};

const DOCUMENT_STATUSES = ['DRAFT', 'SUBMITTED', 'DELETED', 'AUTHORISED', 'PAID', 'VOIDED'] as const;
export type DocumentStatus = (typeof DOCUMENT_STATUSES)[number];

type XeroSales = Failable & {
  readonly Status: DocumentStatus;
  readonly Contact?: { readonly ContactID?: string };
  readonly Reference?: string;
  readonly CurrencyCode: string;
  readonly Total: string;
  readonly Date?: string;
  readonly LineItems?: readonly { readonly LineAmount?: string }[];
};

/** Payment within the document that it pays. */
export type NestedPayment = {
  readonly PaymentID: string;
  readonly Amount: string;
  readonly Date?: string;
  readonly Reference?: string;
  readonly Status?: 'AUTHORISED' | 'DELETED';
};
/** Part of a credit note, prepayment or overpayment that is applied to the invoice. */
type Applied = { readonly AppliedAmount?: string; readonly Date?: string };

export type XeroInvoice = XeroSales & {
  readonly InvoiceID: string;
  readonly Type: string;
  readonly AmountPaid?: string;
  readonly AmountCredited?: string;
  readonly Payments?: readonly NestedPayment[];
  readonly CreditNotes?: readonly (Applied & { readonly CreditNoteID: string })[];
  readonly Prepayments?: readonly (Applied & { readonly PrepaymentID: string })[];
  readonly Overpayments?: readonly (Applied & { readonly OverpaymentID: string })[];
};
export type XeroCreditNote = XeroSales & {
  readonly CreditNoteID: string;
  readonly RemainingCredit?: string;
  readonly Allocations?: readonly { readonly AllocationID?: string; readonly Amount: string }[];
  readonly Payments?: readonly NestedPayment[];
};

export type XeroRecords = {
  readonly Contacts: Failable & {
    readonly ContactID: string;
    readonly ContactNumber?: string;
    readonly Name: string;
  };
  readonly Invoices: XeroInvoice;
  readonly CreditNotes: XeroCreditNote;
  readonly Payments: Failable & NestedPayment;
  readonly Organisations: { readonly Name?: string };
  readonly Allocations: Failable;
};

/** Ids of Xero are UUIDs. Any other text would be part of a path, or be taken for a number of a document. */
export function isXeroId(id: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id);
}

const MILLISECONDS = /^\/Date\((-?\d+)(?:[+-]\d{4})?\)\/$/;

/** Parses a day, which answers have as `/Date(1551916800000+0000)/`; undefined without one. */
export function parseDay(text: string | undefined): string | undefined {
  const ms = Number(MILLISECONDS.exec(text ?? '')?.[1] ?? Date.parse(text ?? ''));
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString().slice(0, 'YYYY-MM-DD'.length);
}
