/**
 * A tenant's account at a provider: records are pushed to it and pulled from it. It is never called inside a database
 * transaction. Each method that creates a record has a key: a repeated call with one key creates nothing twice. Every
 * failure is a `ProviderError`.
 */
import type { ReportedInvoice } from '../core/payments/provider-payments.ts';
import type { ProviderEventSubject } from '../core/platform/integration/provider-event.ts';
import type { PushedInvoiceLine } from '../core/platform/integration/pushed-lines.ts';
import type { SubscriptionStatus } from '../core/subscriptions/record.ts';
import type { AccountPayments } from './account-payments.ts';

/**
 * Key of one creation. After an error of class `person` the next attempt needs a new key, because the provider may
 * repeat its refusal for the old key.
 */
type IdempotentPush = {
  readonly key: string;
  /** Database time before the first call for this record, including calls made with an earlier key. */
  readonly key_created_at: Date;
  /**
   * Seconds since `key_created_at`, by the database clock. If the provider may have forgotten the key, the record is
   * searched for before it is created again.
   */
  readonly key_age_seconds: number;
  /**
   * Whether this key replaced an earlier one after a refusal. The record may exist, so it is searched for before it is
   * created again.
   */
  readonly is_key_renewed: boolean;
};

/** A customer to create at the provider. */
export type PushedCustomer = IdempotentPush & {
  readonly customer_id: string;
  readonly external_id: string;
  readonly name: string;
  readonly email: string;
  /** Name of the business; null for a person. */
  readonly business_name?: string | null;
  readonly address: {
    readonly line1: string;
    readonly line2: string;
    readonly city: string;
    readonly state: string;
    readonly postal_code: string;
    /** Country code (ISO 3166-1 alpha-2), or empty. */
    readonly country: string;
  };
};

/** A subscription to create at the provider as a deal. */
export type PushedSubscription = IdempotentPush & {
  readonly subscription_id: string;
  /** Customer that pays, and its id at the provider. */
  readonly customer_id: string;
  readonly provider_customer_id: string;
  readonly name: string;
  /** Recurring fixed amount of one billing period, by the lines at the start. */
  readonly amount: string;
  readonly currency: string;
  readonly start_date: string;
  readonly subscription_status: SubscriptionStatus;
};

/** Id of a record at the provider, and the address of its page, if it has one. */
export type ProviderRecord = { readonly provider_entity_id: string; readonly url: string | null };

export type PushedInvoice = IdempotentPush & {
  readonly invoice_id: string;
  readonly invoice_number: string;
  /** Id of the customer at the provider; of this service, if the provider has no customers. */
  readonly provider_customer_id: string;
  /** Addressee, for a provider without customers. */
  readonly addressee?: Pick<PushedCustomer, 'name' | 'email'>;
  /** Currency code (ISO 4217), lowercase. */
  readonly currency: string;
  readonly lines: readonly PushedInvoiceLine[];
  /** Sum of the lines. The provider's own total must equal it before the invoice is opened at the provider. */
  readonly total: string;
  /** Instant at which the invoice became final. Absent if the provider dates it itself. */
  readonly issued_at?: string | null;
  readonly due_date: string | null;
  /** Address of the customer at this time, for providers whose tax depends on it. */
  readonly billing_address?: PushedCustomer['address'];
};

export type SearchedInvoice = Pick<PushedInvoice, 'invoice_id' | 'provider_customer_id' | 'key_created_at'>;

/** Money that was received elsewhere, to be applied to the invoice at the provider. */
export type PushedPayment = IdempotentPush & {
  readonly payment_id: string;
  readonly provider_customer_id: string;
  readonly provider_invoice_id: string;
  readonly amount: string;
  readonly currency: string;
  readonly paid_at: string;
  /** Reference shown to people, such as the payment's id at another provider. */
  readonly reference: string;
};

/** A payment that this account received, to be applied to the invoice there. */
export type AttachedPayment = Pick<PushedPayment, 'payment_id' | 'provider_invoice_id'> & {
  readonly gateway_payment_id: string;
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
  /**
   * Effect of the credit note: less remains to be paid (`lowers_remaining`), or paid money was returned outside the
   * provider (`refunded_elsewhere`).
   */
  readonly effect: 'lowers_remaining' | 'refunded_elsewhere';
  readonly reason: string;
};

export type SearchedCreditNote = Pick<
  PushedCreditNote,
  'credit_note_id' | 'provider_customer_id' | 'provider_invoice_id' | 'key_created_at'
>;

export type ProviderInvoice = ProviderRecord & ReportedInvoice;

export type AccountSettings = {
  /** Address that replaces the provider's public one, for tests and proxies. Set per installation. */
  readonly address: URL | null;
  /**
   * Waits until the provider's rate limit allows the next request. Throws a `ProviderError` if the wait would be too
   * long.
   */
  beforeRequest?(): Promise<void>;
};

/** The account that the credentials belong to. */
export type AccountIdentity = { readonly provider_account_id: string | null; readonly name: string | null };

export interface ProviderAccount {
  /** Reads the account, so that wrong credentials are found when a connection is made. */
  identify(): Promise<AccountIdentity>;
  pushCustomer?(customer: PushedCustomer): Promise<ProviderRecord>;
  /** Whether the account has the customer, to identify the account. A deleted customer counts: its id exists only in its own account. */
  hasCustomer?(provider_entity_id: string): Promise<boolean>;
  /**
   * Creates the invoice, compares the provider's total and opens it. If the totals differ, deletes the draft at the
   * provider and throws an error with both.
   */
  pushInvoice?(invoice: PushedInvoice): Promise<ProviderRecord>;
  pushSubscription?(subscription: PushedSubscription): Promise<ProviderRecord>;
  /** Brings the deal of a subscription to its current status. */
  updateSubscription?(
    provider_entity_id: string,
    subscription: Pick<PushedSubscription, 'subscription_status'>,
  ): Promise<void>;
  pushPayment?(payment: PushedPayment): Promise<ProviderRecord>;
  /** Applies a payment received by this account to its invoice. No effect if the payment, or a record of part of it, is already applied. */
  attachPayment?(payment: AttachedPayment): Promise<void>;
  pushCreditNote?(note: PushedCreditNote): Promise<ProviderRecord>;
  /** Finds the credit note that a push created and that is not void; null if there is none. */
  findCreditNote?(note: SearchedCreditNote): Promise<ProviderRecord | null>;
  /** Voids the credit note, so that its amount is due again; no effect if the note is already void. */
  voidCreditNote?(provider_entity_id: string, key: string): Promise<void>;
  /**
   * Finds the invoice of a push whose answer was lost, including an unfinished draft; null if the push had no effect.
   */
  findInvoice?(invoice: SearchedInvoice): Promise<ProviderRecord | null>;
  /** Voids the invoice, so that it can no longer be paid; no effect if the invoice is already void. */
  voidInvoice?(provider_entity_id: string, key: string): Promise<void>;
  /** Reads the invoice; null if the provider no longer has it. */
  pullInvoice?(provider_entity_id: string): Promise<ProviderInvoice | null>;
  /** Lists the provider's ids of the invoices that a payment, refund or dispute concerns. */
  listConcernedInvoices?(subject: ProviderEventSubject): Promise<readonly string[]>;
  readonly payments?: AccountPayments;
}

/** One event of a webhook; a webhook may contain several. */
export type InboundEvent = {
  /** Id of the event at the provider; a repeated delivery has the same id. */
  readonly provider_event_id: string;
  /** Name of the event at the provider. */
  readonly event_type: string;
  /**
   * Account in which the event happened; null if the provider does not name it. An event of another account is ignored.
   */
  readonly provider_account_id: string | null;
  readonly occurred_at: string | null;
  /**
   * Records that the event names; empty if this service does not use the event. A dispute event also lists its payment.
   */
  readonly subjects: readonly ProviderEventSubject[];
};
