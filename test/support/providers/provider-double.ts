/** A provider played by its fake, behind one interface, so that one test runs for all providers. */
import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';

/** In `lost_answer`, the request takes effect, and its answer never arrives. */
export const CALL_FAILURES = ['rate_limit', 'fault', 'lost_answer'] as const;
export type CallFailure = (typeof CALL_FAILURES)[number];

/** The copy of an invoice at the provider. Amounts are decimal texts. */
export type InvoiceCopy = {
  readonly id: string;
  readonly status: 'draft' | 'open' | 'paid' | 'void';
  readonly remaining: string;
};

type SignedHeaders = Readonly<Record<string, string>>;
export type SignedWebhook = {
  readonly headers: SignedHeaders;
  readonly body: string;
  /** Query of the address, without the question mark; absent without one. */
  readonly query?: string;
  /** Headers of the signature, if it covers the address to which the webhook is sent. */
  sign?(url: string): SignedHeaders;
};

/** Method and path of the requests that create a record, and of those that read an invoice. */
export type RequestPatterns = Readonly<Partial<Record<PushedEntityType | 'read', RegExp>>>;

export function findPattern(patterns: RequestPatterns, request: PushedEntityType | 'read'): RegExp {
  const at = patterns[request];
  if (at === undefined) throw new Error(`this provider has no ${request}s`);
  return at;
}

export interface ProviderDouble {
  readonly provider_type: string;
  readonly currency: string;
  /** Credentials of a connection, with the secret of its webhooks. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly fake: {
    readonly url: URL;
    readonly requests: readonly string[];
    retry_after_seconds: number | null;
    is_revoked: boolean;
    is_away: boolean;
    start(): Promise<unknown>;
    stop(): Promise<void>;
    /** Differences between the calls and the provider's own specification. Absent without one. */
    readonly faults?: readonly string[];
    clearDisturbances(): void;
    /** Holds the next request with this method and path before it takes effect. */
    hold(at: RegExp): { readonly arrived: Promise<void>; release(): void };
  };
  /** Disturbs the next request that creates this type of record, or that reads an invoice. */
  disturb(request: PushedEntityType | 'read', failure: CallFailure): void;
  /** Holds the next request that creates this type of record, before it takes effect. Absent if the provider gets no credit notes. */
  hold?(request: PushedEntityType): { readonly arrived: Promise<void>; release(): void };
  /** Ids of the customers at the provider that stand for this customer. */
  listCustomers(customer_id: string): readonly string[];
  listCopies(invoice_id: string): readonly InvoiceCopy[];
  /** Stage and amount of each deal of a subscription, such as `closedwon 100`. Absent if the provider has no deals. */
  listDeals?(subscription_id: string): readonly string[];
  /** Amounts of the payments that were sent with this id. */
  listSentPayments(payment_id: string): readonly string[];
  /** Amounts of the credit notes that were sent with this id and are not void. */
  listSentNotes(credit_note_id: string): readonly string[];
  /** A customer pays all of the copy. Returns the id of the payment. */
  payCopy(copy_id: string): string;
  /** A person refunds a part of a payment. Absent if the provider moves no money. */
  refundPayment?(id: string, amount: string): void;
  /** Sum of the refunds of a payment. Absent if the provider makes none. */
  sumRefunds?(payment_id: string): string;
  /** Absent if the provider does not let people delete payments. */
  deletePayment?(id: string): void;
  /** A person credits a part of the copy. Returns the id of the credit. Absent if the provider has no credits. */
  creditCopy?(copy_id: string, amount: string): string;
  /** A person changes the total of the copy. Absent if a final invoice cannot be changed there. */
  editCopy?(copy_id: string, total: string): void;
  /** A person changes the amount of a payment. Absent if that is not possible there. */
  editPayment?(id: string, amount: string): void;
  /** Whether a credit note that was sent cannot be voided there. */
  readonly has_permanent_notes?: boolean;
  /** A person voids the copy. */
  voidCopy(copy_id: string): void;
  /** Decides whether the provider changes new invoices, so that their total or currency differs from the sent one. */
  alterInvoices(isAltered: boolean): void;
  /** Forgets the idempotency keys, as providers do after a day. */
  forgetKeys(): void;
  /** Unsigned webhook with one event of this name, which has every record that such an event may have. */
  buildWebhook(event: string): object;
  /** Events that exist at the provider and have no effect here. */
  readonly unused_events: readonly string[];
  /** Events that the section "Webhooks" of the provider's page names. Absent if they are in the first column of its table. */
  listNamedEvents?(section: string): readonly string[];
  /** Forgeries of a webhook. Absent if a header signs the body. */
  forge?(webhook: SignedWebhook): readonly SignedWebhook[];
  /** Webhooks of what happened since the last call, signed at this time. */
  takeWebhooks(): readonly SignedWebhook[];
}
