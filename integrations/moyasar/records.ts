/** Records of Moyasar that are used here (docs.moyasar.com/api). Numbers are texts of their digits. */

type Metadata = Readonly<Record<string, unknown>> | null;

export type MoyasarPayment = {
  readonly id: string;
  readonly status: string;
  readonly amount: string;
  readonly currency: string;
  /** Sum of all refunds. */
  readonly refunded: string;
  readonly captured: string;
  readonly captured_at: string | null;
  readonly created_at: string;
  readonly invoice_id: string | null;
  readonly metadata: Metadata;
  readonly source?: {
    readonly message?: string | null;
    /** Page on which the cardholder confirms the payment. */
    readonly transaction_url?: string | null;
  } | null;
};

export type MoyasarInvoice = {
  readonly id: string;
  readonly status: string;
  readonly amount: string;
  readonly currency: string;
  /** Page on which the invoice is paid. */
  readonly url: string;
  readonly created_at: string;
  readonly metadata: Metadata;
  /** Attempts to pay the invoice; absent in lists. */
  readonly payments?: readonly MoyasarPayment[] | null;
};

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether the text has the form of an id of an invoice or payment, so that no other text becomes part of a URL. */
export function isMoyasarId(id: string): boolean {
  return UUID.test(id);
}

export function readMetadata({ metadata }: { readonly metadata: Metadata }, name: string): string | null {
  const value = metadata?.[name];
  return typeof value === 'string' ? value : null;
}
