/**
 * A tenant's account at a provider: the records that are pushed to it and read from it. It is never called inside a database transaction.
 * Each method that creates a record has a key: a repeated call with one key creates nothing twice. Every failure is a `ProviderError`.
 */
import type { ReportedInvoice } from '../core/payments/provider-payments.ts';
import type { ProviderEventSubject } from '../core/platform/integration/provider-event.ts';
import type { PushedInvoiceLine } from '../core/platform/integration/pushed-lines.ts';
import type { AccountPayments } from './account-payments.ts';

/**
 * Identity of one creation. After an error of class `person` the next attempt needs a new key, because the provider may repeat its answer to
 * the old one.
 */
type IdempotentPush = {
  readonly key: string;
  /** Instant before the first call, also with an earlier key, by the clock of the database. */
  readonly key_created_at: Date;
  /** Seconds since then, by the same clock. Providers forget keys; an older record is searched for before it is created again. */
  readonly key_age_seconds: number;
  /** An earlier key was given up, so the record may exist: it is searched for before it is created again. */
  readonly is_key_renewed: boolean;
};

/** Records that have a counterpart at a provider. */
export type PushedCustomer = IdempotentPush & {
  readonly customer_id: string;
  readonly external_id: string;
  readonly name: string;
  readonly email: string;
  readonly address: {
    readonly line1: string;
    readonly line2: string;
    readonly city: string;
    readonly state: string;
    readonly postal_code: string;
    /** ISO 3166-1 alpha-2, or empty. */
    readonly country: string;
  };
};

/** A record at the provider, and its page there, if it has one. */
export type ProviderRecord = { readonly provider_entity_id: string; readonly url: string | null };

export type PushedInvoice = IdempotentPush & {
  readonly invoice_id: string;
  readonly invoice_number: string;
  readonly provider_customer_id: string;
  /** ISO 4217, lowercase. */
  readonly currency: string;
  readonly lines: readonly PushedInvoiceLine[];
  /** Sum of the lines. The provider's own total must equal it before the invoice is opened there. */
  readonly total: string;
  /** Instant at which the invoice became final. Absent if the provider dates it itself. */
  readonly issued_at?: string | null;
  readonly due_date: string | null;
};

export type SearchedInvoice = Pick<PushedInvoice, 'invoice_id' | 'provider_customer_id' | 'key_created_at'>;

/** Money that was received elsewhere, and is applied to the invoice at the provider. */
export type PushedPayment = IdempotentPush & {
  readonly payment_id: string;
  readonly provider_customer_id: string;
  readonly provider_invoice_id: string;
  readonly amount: string;
  readonly currency: string;
  readonly paid_at: string;
  /** Reference of the payment for people, such as the id at another provider. */
  readonly reference: string;
};

export type PushedCreditNote = IdempotentPush & {
  readonly credit_note_id: string;
  readonly credit_note_number: string;
  readonly provider_customer_id: string;
  readonly provider_invoice_id: string;
  readonly currency: string;
  readonly lines: readonly PushedInvoiceLine[];
  /** Sum of the lines; positive. */
  readonly total: string;
  /** The amount lowers what remains to be paid, or money that was paid is given back outside the provider. */
  readonly effect: 'lowers_remaining' | 'refunded_elsewhere';
  readonly reason: string;
};

export type ProviderInvoice = ProviderRecord & ReportedInvoice & { readonly total: string; readonly currency: string };

export type AccountSettings = {
  /** Address of the provider in place of its public one: a setting of the installation, for tests and proxies. */
  readonly address: URL | null;
  /** Resolves when the next request may be sent, by the limits of the provider. Throws a `ProviderError` if the wait would be too long. */
  beforeRequest?(): Promise<void>;
};

/** The account that the credentials belong to. */
export type AccountIdentity = { readonly provider_account_id: string | null; readonly name: string | null };

export interface ProviderAccount {
  /** Reads the account, so that wrong credentials are found when a connection is made. */
  identify(): Promise<AccountIdentity>;
  pushCustomer?(customer: PushedCustomer): Promise<ProviderRecord>;
  /**
   * Creates the invoice, compares the provider's total and opens it. If the totals differ, the draft at the provider is deleted and the
   * error names both.
   */
  pushInvoice?(invoice: PushedInvoice): Promise<ProviderRecord>;
  pushPayment?(payment: PushedPayment): Promise<ProviderRecord>;
  /** Lets a payment that this account took pay the invoice there; no effect on one that does already. */
  attachPayment?(provider_entity_id: string, gateway_payment_id: string): Promise<void>;
  pushCreditNote?(note: PushedCreditNote): Promise<ProviderRecord>;
  /** Afterwards its amount is due again there; no effect on one that is void already. */
  voidCreditNote?(provider_entity_id: string, key: string): Promise<void>;
  /** The invoice of a push whose answer was lost, also an unfinished draft; null if the push had no effect. */
  findInvoice?(invoice: SearchedInvoice): Promise<ProviderRecord | null>;
  /** After this the invoice can no longer be paid there; no effect on one that is void already. */
  voidInvoice?(provider_entity_id: string, key: string): Promise<void>;
  /** Null if the provider no longer has it. */
  pullInvoice?(provider_entity_id: string): Promise<ProviderInvoice | null>;
  /** Ids of the provider's invoices that a payment, a refund or a dispute at the provider concerns. */
  listConcernedInvoices?(subject: ProviderEventSubject): Promise<readonly string[]>;
  readonly payments?: AccountPayments;
}

/** One event of a webhook, which may contain several. */
export type InboundEvent = {
  /** Unique at the provider: a repeated delivery has the same one. */
  readonly provider_event_id: string;
  /** The provider's name of the event. */
  readonly event_type: string;
  /** Account that the event is about; null if the provider does not name it. An event of another account is ignored. */
  readonly provider_account_id: string | null;
  readonly occurred_at: string | null;
  /** Empty if this service does not use the event. The event of a dispute names its payment as a further subject. */
  readonly subjects: readonly ProviderEventSubject[];
};
