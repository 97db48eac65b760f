/**
 * What a payment provider does for us. It is never asked inside of a database transaction, and every question carries a key: who
 * asks again under the same key is told what came of the first time and charges nothing (docs/rules/payments.md, "Never twice").
 * What cannot be reached throws `service_unavailable`: then nobody knows what came of it, and it is asked again.
 */

export type PaymentScope = { readonly tenant_id: string; readonly environment_id: string };

export type PaymentOutcome =
  | { readonly outcome: 'succeeded'; readonly gateway_payment_id: string }
  | { readonly outcome: 'failed'; readonly gateway_payment_id: string | null; readonly error: string }
  /** It takes its time, or the customer has to act at `url`; it is asked after at `ask_at`. */
  | {
      readonly outcome: 'processing';
      readonly gateway_payment_id: string;
      readonly url: string | null;
      readonly ask_at: Date | null;
    };

export type PaymentCharge = {
  readonly key: string;
  readonly amount: string;
  readonly currency: string;
  /** As the provider calls it. */
  readonly payment_method_id: string;
  readonly now: Date;
};

export type PaymentLink = Omit<PaymentCharge, 'payment_method_id'> & {
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

/** What a provider tells of itself: which payment is meant, by its id there. */
export type ProviderEvent = { readonly gateway_payment_id: string };

export type ProviderNotice = {
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The bytes that were signed. */
  readonly body: string;
  /** Of the installation: that of an environment comes from it. Without one nothing is believed. */
  readonly secret: string | null;
};

export interface PaymentProvider {
  /** Takes the money, or says why not. */
  charge(place: PaymentScope, charge: PaymentCharge): Promise<PaymentOutcome>;
  /** A page on which the customer pays. */
  openLink(place: PaymentScope, link: PaymentLink): Promise<PaymentOutcome>;
  /** How it stands with what was asked under the key; null where it was never asked. */
  findOutcome(place: PaymentScope, key: string, now: Date): Promise<PaymentOutcome | null>;
  /** Nobody can pay it any more. */
  cancel(place: PaymentScope, gateway_payment_id: string): Promise<void>;
  refund(place: PaymentScope, refund: Refund): Promise<RefundOutcome>;
  /** Checks the signature, or throws, and reads what is told. */
  receive(place: PaymentScope, notice: ProviderNotice): Promise<ProviderEvent>;
}
