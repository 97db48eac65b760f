/** Records of Nomod that are used here (nomod.com/docs/api-reference). Amounts are decimal texts in units of the currency. */

export type NomodCustomer = { readonly id: string; readonly created: string; readonly job_title?: string | null };

export type NomodInvoice = {
  readonly id: string;
  readonly created: string;
  readonly status: string;
  readonly url: string;
  readonly amount: string;
  readonly currency: string;
  readonly note?: string | null;
  readonly invoice_number?: string | null;
};

export type NomodLink = {
  readonly id: string;
  readonly status: string;
  readonly url: string;
  readonly amount: string;
  readonly currency: string;
  readonly note?: string | null;
};

type NomodReference = string | { readonly id?: string | null } | null;

export type NomodCharge = {
  readonly id: string;
  readonly created: string;
  readonly status: string;
  /** Received amount. */
  readonly total: string;
  readonly currency: string;
  readonly refund_total?: string | null;
  readonly refunds?: readonly { readonly created: string; readonly amount: string }[] | null;
  readonly note?: string | null;
  /** Nomod documents neither of the two; a charge of an invoice is also recognized by the note. */
  readonly invoice?: NomodReference;
  readonly invoice_id?: NomodReference;
};

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether the text has the form of an id, so that no other text becomes part of a URL. */
export function isNomodId(id: string): boolean {
  return UUID.test(id);
}

/** Reads the id of the invoice that a charge paid; null if the charge does not name it. */
export function readInvoiceId({ invoice, invoice_id }: NomodCharge): string | null {
  const reference = invoice_id ?? invoice ?? null;
  return typeof reference === 'object' ? (reference?.id ?? null) : reference;
}
