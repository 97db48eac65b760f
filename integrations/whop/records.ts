/** Records of Whop that are used here (docs.whop.com/api-reference). Numbers are texts of their digits. */

type WhopMetadata = Readonly<Record<string, unknown>> | null;
type WhopIdentified = { readonly id: string };

export type WhopInvoice = WhopIdentified & {
  readonly status: string;
  readonly created_at: string;
  readonly current_plan: WhopIdentified & { readonly currency: string };
  readonly line_items?: readonly { readonly label: string; readonly total: string }[] | null;
  /** Token of the public page of the invoice. */
  readonly fetch_invoice_token?: string | null;
};

export type WhopRefund = WhopIdentified & {
  readonly amount: string;
  readonly currency: string;
  readonly status: string;
  readonly created_at: string;
};

export type WhopPayment = WhopIdentified & {
  /** State in Whop's words; `status` alone does not show refunds and failures. */
  readonly substatus: string;
  readonly currency: string;
  readonly total: string | null;
  readonly tax_amount?: string | null;
  /** `exclusive` if the tax was added to the price. */
  readonly tax_behavior?: string | null;
  readonly tax_refunded_amount?: string | null;
  readonly refunded_amount?: string | null;
  /** At most 100, newest first; absent in lists. */
  readonly refunds?: readonly WhopRefund[] | null;
  readonly created_at: string;
  readonly paid_at?: string | null;
  readonly failure_message?: string | null;
  readonly next_payment_attempt?: string | null;
  readonly voidable?: boolean;
  readonly plan?: (WhopIdentified & { readonly internal_notes?: string | null }) | null;
  readonly product?: WhopIdentified | null;
  /** Member of the company who paid, `mber_…`. */
  readonly member?: WhopIdentified | null;
  readonly metadata?: WhopMetadata;
};

/** A page for a payment, or for saving a payment method. */
export type WhopCheckout = WhopIdentified & {
  readonly created_at: string;
  readonly purchase_url?: string | null;
  readonly metadata?: WhopMetadata;
  readonly plan?: (WhopIdentified & { readonly currency: string; readonly initial_price: string }) | null;
};

export type WhopSetup = WhopIdentified & {
  readonly status: string;
  readonly checkout_configuration?: WhopIdentified | null;
  readonly member?: WhopIdentified | null;
  readonly payment_method?: (WhopIdentified & { readonly payment_method_type: string }) | null;
  readonly metadata?: WhopMetadata;
};

export type WhopCompany = WhopIdentified & { readonly title?: string | null };

/** Whether the text has the form of an id, so that no other text becomes part of a URL. */
export function isWhopId(id: string): boolean {
  return /^[A-Za-z]{2,8}_[A-Za-z0-9]{1,100}$/.test(id);
}

export function readMetadata({ metadata }: { readonly metadata?: WhopMetadata }, name: string): string | null {
  const value = metadata?.[name];
  return typeof value === 'string' ? value : null;
}
