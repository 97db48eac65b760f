/**
 * Interface of a payment provider. It is never called inside a database transaction. Every request has a key: a repeated request with one
 * key returns the first result and charges nothing (docs/rules/payments.md, "Never twice"). An unreachable provider throws
 * `service_unavailable`: the result is unknown, and the request is repeated.
 */

export type PaymentScope = { readonly tenant_id: string; readonly environment_id: string };

export type PaymentOutcome =
  | { readonly outcome: 'succeeded'; readonly gateway_payment_id: string }
  | { readonly outcome: 'failed'; readonly gateway_payment_id: string | null; readonly error: string }
  /** The payment is pending, or the customer has to act at `url`; its state is requested again at `ask_at`. */
  | {
      readonly outcome: 'processing';
      readonly gateway_payment_id: string;
      readonly url: string | null;
      readonly ask_at: Date | null;
    };

type PaymentCharge = {
  readonly key: string;
  readonly amount: string;
  readonly currency: string;
  /** Id of the payment method at the provider. */
  readonly payment_method_id: string;
  readonly now: Date;
};

type PaymentLink = Omit<PaymentCharge, 'payment_method_id'> & {
  readonly success_url: string | null;
  readonly cancel_url: string | null;
};

export type Refund = {
  readonly key: string;
  readonly gateway_payment_id: string;
  readonly amount: string;
  readonly now: Date;
};

export type RefundOutcome =
  | { readonly outcome: 'succeeded'; readonly gateway_refund_id: string }
  | { readonly outcome: 'failed'; readonly error: string };

/** Notification of a provider: identifies the payment by the provider's id. */
export type ProviderEvent = { readonly gateway_payment_id: string };

export type ProviderNotice = {
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The signed bytes. */
  readonly body: string;
  /** Secret of the installation; the secret of each environment is derived from it. If null, every notice is rejected. */
  readonly secret: string | null;
};

export interface PaymentProvider {
  /** Charges the payment method, or returns the reason of the failure. */
  charge(place: PaymentScope, charge: PaymentCharge): Promise<PaymentOutcome>;
  /** Creates a page on which the customer pays. */
  openLink(place: PaymentScope, link: PaymentLink): Promise<PaymentOutcome>;
  /** State of the request with this key; null if there was none. */
  findOutcome(place: PaymentScope, key: string, now: Date): Promise<PaymentOutcome | null>;
  /** After this the payment can no longer be paid. */
  cancel(place: PaymentScope, gateway_payment_id: string): Promise<void>;
  refund(place: PaymentScope, refund: Refund): Promise<RefundOutcome>;
  /** Checks the signature (throws if it is wrong) and parses the notification. */
  receive(place: PaymentScope, notice: ProviderNotice): Promise<ProviderEvent>;
}
