/**
 * Interface of a payment provider. It is never called inside a database transaction. Every request has a key: a repeated request with one
 * key returns the first result and charges nothing (docs/rules/payments.md, "Never twice"). An unreachable provider throws
 * `service_unavailable`: the result is unknown, and the request is repeated.
 */
import type { ReportedRefund } from '../core/payments/provider-payments.ts';

export type PaymentScope = { readonly tenant_id: string; readonly environment_id: string };

export type PaymentOutcome =
  | {
      readonly outcome: 'succeeded';
      readonly gateway_payment_id: string;
      /**
       * Amount that the provider received, in the requested currency. Absent if it equals the requested amount or was
       * not read.
       */
      readonly received_amount?: string;
      /** Payment method that the customer entered on a page, if the page saves it. */
      readonly saved_payment_method?: { readonly id: string; readonly type: 'CARD' | 'ACH' };
      /**
       * Sum of all refunds, including those made at the provider. Absent if there are none, or if they were not read.
       */
      readonly refunded_amount?: string;
      /** All refunds, if the provider lists them. */
      readonly refunds?: readonly ReportedRefund[];
    }
  | { readonly outcome: 'failed'; readonly gateway_payment_id: string | null; readonly error: string }
  /** The payment is pending, or the customer has to act at `url`. The service queries its state again at `check_at`. */
  | {
      readonly outcome: 'processing';
      readonly gateway_payment_id: string;
      readonly url: string | null;
      readonly check_at: Date | null;
    };

/** A payment as requested with one key. */
export type PaymentRequest = {
  readonly key: string;
  readonly amount: string;
  readonly currency: string;
  readonly now: Date;
  readonly payment_id: string;
  readonly customer_id: string;
  readonly invoice_id: string;
  readonly invoice_number: string | null;
  /** No request with this key was made before this instant, by the clock of the database. */
  readonly requested_at: Date;
  /** Id of the charge or page, if an earlier request with this key returned it. */
  readonly gateway_payment_id: string | null;
  readonly is_page: boolean;
  /** Whether the payment no longer pays its invoice, so that money for it is refunded. */
  readonly is_closed: boolean;
  readonly success_url: string | null;
  readonly cancel_url: string | null;
  readonly saves_payment_method: boolean;
};

type PaymentCharge = PaymentRequest & {
  /** Id of the payment method at the provider. */
  readonly payment_method_id: string;
};

export type Refund = {
  readonly key: string;
  readonly gateway_payment_id: string;
  readonly amount: string;
  readonly currency: string;
  /** No request with this key was made before this instant, by the clock of the database. */
  readonly requested_at: Date;
  /** Sum of the other refunds of the payment that are recorded as made, for a provider without keys and ids of refunds. */
  readonly refunded_before?: string;
  readonly now: Date;
};

export type RefundOutcome =
  | { readonly outcome: 'succeeded'; readonly gateway_refund_id: string }
  /** The provider has accepted the refund and decides later; the request is repeated with the same key. */
  | { readonly outcome: 'pending'; readonly gateway_refund_id: string }
  | { readonly outcome: 'failed'; readonly error: string };

/** Parsed content of a provider's notification: the provider's id of the payment. */
export type ProviderEvent = { readonly gateway_payment_id: string };

export type ProviderNotice = {
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The signed bytes. */
  readonly body: string;
  /**
   * Secret of the installation, from which the secret of each environment is derived. Null rejects every notification.
   */
  readonly secret: string | null;
};

export interface PaymentProvider {
  /** Charges the payment method; the outcome of a failure has the reason. */
  charge(place: PaymentScope, charge: PaymentCharge): Promise<PaymentOutcome>;
  /** Creates a page on which the customer pays. */
  openLink(place: PaymentScope, request: PaymentRequest): Promise<PaymentOutcome>;
  /** Returns the state of the request with this key; null if there was none. */
  findOutcome(place: PaymentScope, request: PaymentRequest): Promise<PaymentOutcome | null>;
  /** Cancels a payment, which can then no longer be paid. */
  cancel(place: PaymentScope, gateway_payment_id: string, now: Date): Promise<void>;
  refund(place: PaymentScope, refund: Refund): Promise<RefundOutcome>;
  /**
   * Checks the signature of a notification and parses it; throws if the signature is wrong. Only providers without
   * connections have this function.
   */
  receive?(place: PaymentScope, notice: ProviderNotice): Promise<ProviderEvent>;
  /**
   * Decides an open charge in place of the customer or the bank. Only a provider without real customers has this
   * function.
   */
  simulate?(place: PaymentScope, gateway_payment_id: string, outcome: 'succeeded' | 'failed'): Promise<void>;
}

export type SimulatedCharge = {
  readonly id: string;
  readonly charge_status: 'open' | 'succeeded' | 'failed' | 'cancelled';
  readonly error: string | null;
  readonly payment_url: string | null;
  /** Instant at which the charge ends by itself, and its status then. */
  readonly ends_at: Date | null;
  readonly ends_as: 'succeeded' | 'failed' | null;
};

type NewCharge = Omit<SimulatedCharge, 'id'> & {
  readonly key: string;
  readonly kind: 'charge' | 'link';
  readonly amount: string;
  readonly currency: string;
  readonly payment_method_id: string;
  readonly now: Date;
};

/** Storage for a provider that simulates charges, which has no vendor to store them. */
export interface SimulatedChargeBook {
  /** Returns the charge with this key, and creates it if there is none. */
  enter(place: PaymentScope, charge: NewCharge): Promise<{ charge: SimulatedCharge; is_new: boolean }>;
  find(place: PaymentScope, by: { key: string } | { id: string }): Promise<SimulatedCharge | null>;
  /** Ends a charge; has no effect if it has ended already. */
  end(place: PaymentScope, id: string, as: Pick<SimulatedCharge, 'charge_status' | 'error'>): Promise<void>;
  /** Refunds the amount, once per key. Returns false if the remaining amount of the charge is less. */
  refund(place: PaymentScope, refund: { id: string; key: string; amount: string }): Promise<boolean>;
}
