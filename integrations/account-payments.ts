/**
 * Money that an account at a provider moves on request: charges of saved payment methods, payment pages, refunds. A repeated request with
 * one key returns the first result and charges nothing. Every failure is a `ProviderError`; if its class is `wait`, the result is unknown
 * and the request is repeated with the same key.
 */
import type { PaymentOutcome, RefundOutcome } from './payment-provider.ts';

/** A payment, with the ids by which people and inbound events find it at the provider. */
export type RequestedPayment = {
  readonly key: string;
  /**
   * Database time before the first request with this key. If the provider may have forgotten the key, the payment is
   * searched for before it is requested again.
   */
  readonly requested_at: Date;
  /** Age of the key, by the clock that wrote `requested_at`. */
  readonly key_age_seconds: number;
  /** Amount in currency units, as decimal text. */
  readonly amount: string;
  /** Currency code (ISO 4217), lowercase. */
  readonly currency: string;
  readonly payment_id: string;
  readonly invoice_id: string;
  readonly invoice_number: string | null;
  readonly provider_customer_id: string;
  /**
   * Id of the provider's copy of the invoice, if the invoice was pushed. The payment is applied to that copy, so that
   * the customer cannot pay it twice.
   */
  readonly provider_invoice_id: string | null;
  /** Id of the charge or of the page, if an earlier call with this key returned it. */
  readonly gateway_payment_id: string | null;
  /** Whether the customer pays on a page; otherwise a saved payment method is charged. */
  readonly is_page: boolean;
};

export type AccountCharge = RequestedPayment & {
  /** Id of the saved payment method at the provider. */
  readonly provider_payment_method_id: string;
  /** Page to which the customer returns after confirming the charge. */
  readonly success_url: string | null;
};

export type AccountPaymentPage = RequestedPayment & {
  readonly success_url: string | null;
  readonly cancel_url: string | null;
  /** Whether the payment method is saved for later charges. */
  readonly saves_payment_method: boolean;
};

export type AccountRefund = {
  readonly key: string;
  readonly requested_at: Date;
  readonly key_age_seconds: number;
  readonly gateway_payment_id: string;
  readonly amount: string;
  readonly currency: string;
  readonly refund_id: string;
  /** Sum of the other refunds of the payment that are recorded as made, for a provider without keys and ids of refunds. */
  readonly refunded_before?: string;
};

export type CardSetup = {
  readonly key: string;
  readonly customer_id: string;
  readonly provider_customer_id: string;
  readonly success_url: string | null;
  readonly cancel_url: string | null;
  /** Whether the payment method becomes the default of its customer. */
  readonly sets_default: boolean;
};

/**
 * Page or form on which the customer enters the card: `url` is a page of the provider, `client_secret` is for a form on
 * a page of the tenant.
 */
export type StartedCardSetup = {
  readonly provider_setup_id: string;
  readonly url: string | null;
  readonly client_secret: string | null;
};

export type SavedPaymentMethod = {
  readonly provider_payment_method_id: string;
  readonly payment_method_type: 'CARD' | 'ACH' | 'UPI';
  readonly is_default: boolean;
  readonly card: {
    readonly brand: string;
    readonly last4: string;
    readonly exp_month: number;
    readonly exp_year: number;
  } | null;
};

/** A payment method that was found by the id of its setup or by its own id. */
export type ReadPaymentMethod = {
  readonly provider_payment_method_id: string;
  /** Owner at the provider; null if the payment method was detached, so that it can no longer be charged. */
  readonly provider_customer_id: string | null;
  readonly payment_method_type: SavedPaymentMethod['payment_method_type'];
  /** Whether the setup makes this payment method the default one. */
  readonly sets_default: boolean;
};

export interface AccountPayments {
  charge?(charge: AccountCharge): Promise<PaymentOutcome>;
  openPage?(page: AccountPaymentPage): Promise<PaymentOutcome>;
  /** Returns the state of the charge or page with this key; null if there is none. */
  findOutcome(payment: RequestedPayment): Promise<PaymentOutcome | null>;
  /** Cancels the payment, so that the customer can no longer pay it; no effect on a payment that has ended. */
  cancel(gateway_payment_id: string): Promise<void>;
  refund?(refund: AccountRefund): Promise<RefundOutcome>;
  startCardSetup?(setup: CardSetup): Promise<StartedCardSetup>;
  /** Finds a payment method by the id of its setup, by that of the setup's page, or by its own id; null if the setup has saved none. */
  readPaymentMethod?(provider_entity_id: string): Promise<ReadPaymentMethod | null>;
  /** Lists the payment methods that can be charged later; at most one is the default. */
  listPaymentMethods?(provider_customer_id: string): Promise<readonly SavedPaymentMethod[]>;
}
