/**
 * Shapes of a payment of an invoice, its attempts and its refunds, and of a customer's payment methods (docs/rules/payments.md). State
 * transitions are in moves.ts, retries in schedule.ts.
 */
import { z } from 'zod';
import {
  anyCase,
  anythingOrNull,
  baseFields,
  decimalText,
  keyNotMatching,
  keyText,
  metadata,
  metadataMap,
  orDefault,
  orNull,
  timestampText,
} from '../foundation/record.ts';
import { PAYMENT_STATUSES } from '../invoicing/invoice/record.ts';

export const PAYMENT_METHOD_TYPES = ['CARD', 'ACH', 'OFFLINE', 'CREDITS', 'PAYMENT_LINK'] as const;
export const DESTINATION_TYPES = ['INVOICE'] as const;
/**
 * Gateways: payment providers of the installation, and providers with an account that a connection opens. A request
 * with another name is refused.
 */
export const PAYMENT_GATEWAYS = [
  'sandbox',
  'stripe',
  'razorpay',
  'nomod',
  'moyasar',
  'paddle',
  'whop',
  'chargebee',
] as const;
const PAYMENT_METHOD_STATUSES = ['ACTIVE', 'INACTIVE', 'EXPIRED'] as const;
const REFUND_STATUSES = ['pending', 'succeeded', 'failed'] as const;

export type PaymentMethodType = (typeof PAYMENT_METHOD_TYPES)[number];
export type PaymentGateway = (typeof PAYMENT_GATEWAYS)[number];

export const Payment = z.object({
  id: z.string(),
  idempotency_key: z.string().meta({ description: 'Idempotency key: one key creates one payment.' }),
  customer_id: z.string().meta({ description: 'Payer: the customer of the invoice.' }),
  destination_type: z.enum(DESTINATION_TYPES).meta({ description: 'Type of the record `destination_id`: an invoice.' }),
  destination_id: z.string().meta({ description: 'Id of the invoice that the payment is for.' }),
  invoice_number: z.string().nullish().meta({ description: 'Number of the paid invoice.' }),
  payment_method_type: z.enum(PAYMENT_METHOD_TYPES).meta({
    description:
      'OFFLINE was received elsewhere; CREDITS are taken from a postpaid wallet; CARD and ACH are charged; PAYMENT_LINK is paid on a page.',
  }),
  payment_method_id: z
    .string()
    .meta({ description: "Payment method, by the provider's id; empty if none is charged." }),
  payment_gateway: z
    .enum(PAYMENT_GATEWAYS)
    .nullish()
    .meta({ description: 'Provider of the payment; null for OFFLINE.' }),
  amount: decimalText.meta({ description: 'Amount in units of the currency, as decimal text.' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217), in lower case: that of the invoice.' }),
  payment_status: z.enum(PAYMENT_STATUSES).meta({ description: 'Status of the payment.' }),
  track_attempts: z.boolean().meta({ description: 'Whether attempts of the payment are stored; false for OFFLINE.' }),
  gateway_payment_id: z
    .string()
    .nullish()
    .meta({ description: "Provider's id of the payment; null until the provider has assigned one." }),
  gateway_tracking_id: z.string().nullish().meta({
    description: 'Key of the last request to the provider. A repeated request with this key charges nothing.',
  }),
  gateway_metadata: metadata
    .nullish()
    .meta({ description: 'Data of the provider about the payment; null without any.' }),
  payment_url: z
    .string()
    .nullish()
    .meta({ description: 'Page on which the customer pays or confirms the charge; null if there is nothing to do.' }),
  success_url: z
    .string()
    .nullish()
    .meta({ description: 'URL to which the page leads after a payment; null if the request named none.' }),
  cancel_url: z
    .string()
    .nullish()
    .meta({ description: 'URL to which the page leads if the customer does not pay; null if the request named none.' }),
  metadata: metadata.nullish().meta({ description: 'Key-value pairs of your own; null without any.' }),
  succeeded_at: timestampText.nullish().meta({ description: 'Time at which the money was received; null before.' }),
  failed_at: timestampText.nullish().meta({ description: 'Time at which the payment finally failed; null before.' }),
  refunded_at: timestampText.nullish().meta({ description: 'Time of the last refund; null before.' }),
  voided_at: timestampText.nullish().meta({ description: 'Time at which the payment was voided; null before.' }),
  error_message: z
    .string()
    .nullish()
    .meta({ description: 'Reason of the failure, why the provider could not be queried, or why a void page is open.' }),
  save_card_and_make_default: z
    .boolean()
    .meta({ description: 'Whether a successful payment saves its payment method for the customer as the default.' }),
  is_automatic: z.boolean().meta({ description: 'Whether the payment was created because an invoice became final.' }),
  attempt_count: z.int().meta({ description: 'Number of attempts.' }),
  refunded_amount: decimalText.meta({ description: 'Refunded amount of the payment.' }),
  next_attempt_at: timestampText.nullish().meta({
    description: 'Time of the next attempt or of the next query to the provider; null if nothing is left to do.',
  }),
  version: z.int().meta({ description: 'Version of the payment; every change adds 1.' }),
  ...baseFields,
  checkout_session_id: z
    .string()
    .nullish()
    .meta({ description: 'Checkout session of the payment page; null without one.' }),
  connection_id: z.string().nullish().meta({
    description:
      'Connection to the provider that reported the payment; null for a payment that this service requested or recorded.',
  }),
});
export type Payment = z.infer<typeof Payment>;

export const PaymentAttempt = z.object({
  id: z.string(),
  payment_id: z.string().meta({ description: 'Payment of the attempt.' }),
  attempt_number: z.int().meta({ description: 'Number of the attempt, from 1.' }),
  payment_status: z.enum(PAYMENT_STATUSES).meta({ description: 'Result of the attempt; PROCESSING until it ends.' }),
  payment_method_id: z.string().meta({ description: 'Charged payment method.' }),
  amount: decimalText.meta({ description: 'Requested amount.' }),
  error_message: z.string().nullish().meta({ description: 'Reason of the failure; null without a failure.' }),
  metadata: metadata.nullish().meta({ description: 'Unused: always null.' }),
  ...baseFields,
});
export type PaymentAttempt = z.infer<typeof PaymentAttempt>;

export const PaymentRefund = z.object({
  id: z.string(),
  payment_id: z.string().meta({ description: 'Refunded payment.' }),
  amount: decimalText.meta({ description: 'Amount of the refund.' }),
  refund_status: z
    .enum(REFUND_STATUSES)
    .meta({ description: 'Status of the refund; pending until the provider answers.' }),
  reason: z.string().nullish().meta({ description: 'Reason for people.' }),
  gateway_refund_id: z
    .string()
    .nullish()
    .meta({ description: "Provider's id of the refund; null until the provider has assigned one." }),
  error_message: z.string().nullish().meta({ description: 'Reason of the failure; null without a failure.' }),
  idempotency_key: z.string().meta({ description: 'Idempotency key: one key creates one refund of the payment.' }),
  ...baseFields,
});
export type PaymentRefund = z.infer<typeof PaymentRefund>;

export const PaymentMethod = z.object({
  id: z.string(),
  customer_id: z.string().meta({ description: 'Customer that owns the payment method.' }),
  payment_gateway: z.enum(PAYMENT_GATEWAYS).meta({ description: 'Provider of the payment method.' }),
  gateway_payment_method_id: z.string().meta({ description: "Provider's id of the payment method." }),
  payment_method_type: z.enum(PAYMENT_METHOD_TYPES).meta({ description: 'Type of the payment method: CARD or ACH.' }),
  payment_method_status: z
    .enum(PAYMENT_METHOD_STATUSES)
    .meta({ description: 'Status of the payment method. Only an ACTIVE one is charged.' }),
  is_default: z
    .boolean()
    .meta({ description: 'Whether invoices are collected with this payment method. A customer has one default.' }),
  ...baseFields,
});
export type PaymentMethod = z.infer<typeof PaymentMethod>;

const url = orNull(z.url()).meta({
  description: 'URL to which the page of the provider leads after the payment. Default: none.',
});
const gateway = orNull(anyCase(PAYMENT_GATEWAYS)).meta({
  description:
    'Provider of the payment. Default: that of the payment method, else `default_gateway` of the setting `payment_config`. It must be the sandbox or have a connection.',
});

/** Fields of a request for a payment (docs/rules/payments.md, "Making a payment"). */
export const createPaymentShape = z.object({
  idempotency_key: orNull(keyText).meta({
    description:
      'Idempotency key: one key creates one payment. Without a key, equal payments within a minute count as one payment.',
  }),
  destination_type: anyCase(DESTINATION_TYPES).meta({ description: 'Type of the paid record: INVOICE.' }),
  destination_id: z.string().min(1).meta({ description: 'Id of the invoice. It must be final and not paid.' }),
  payment_method_type: anyCase([...PAYMENT_METHOD_TYPES, 'UPI']).meta({
    description: 'OFFLINE, CREDITS, CARD, ACH or PAYMENT_LINK. UPI is refused.',
  }),
  payment_method_id: orNull(keyText).meta({
    description:
      "Saved payment method, or the provider's id of one; for CREDITS the wallet. Default: the default payment method. Refused for OFFLINE and PAYMENT_LINK.",
  }),
  payment_gateway: gateway,
  amount: decimalText.meta({
    description: 'Amount of the payment; greater than 0, with no more decimals than the currency has.',
  }),
  currency: z
    .string()
    .length(3)
    .meta({ description: 'Currency of the invoice, case-insensitive. Another currency is refused.' }),
  success_url: url,
  cancel_url: url,
  metadata,
  process_payment: orDefault(z.boolean(), true).meta({
    description:
      'Whether the payment is processed at once; otherwise it waits for `POST /payments/{id}/process`. Default: true.',
  }),
  save_card_and_make_default: orDefault(z.boolean(), false).meta({
    description:
      'Whether a successful payment saves its payment method for the customer as the default. Default: false.',
  }),
  gateway_options: anythingOrNull.meta({ description: 'Not supported yet: refused unless empty.' }),
});
export type CreatePayment = z.output<typeof createPaymentShape>;

export const updatePaymentShape = z.object({
  payment_status: anyCase(PAYMENT_STATUSES)
    .nullish()
    .meta({ description: 'SUCCEEDED, FAILED or VOIDED. If a provider decides the status, a `reason` is required.' }),
  amount: decimalText.nullish().meta({
    description:
      'New amount; refused after the payment is settled. An automatic payment accepts an amount only together with SUCCEEDED.',
  }),
  payment_gateway: anyCase(PAYMENT_GATEWAYS).nullish().meta({
    description:
      'Provider, before the payment is settled. An automatic payment accepts it only together with SUCCEEDED.',
  }),
  gateway_payment_id: keyText
    .nullish()
    .meta({ description: "Provider's id of the payment, before the payment is settled." }),
  payment_method_id: keyText.nullish().meta({
    description:
      'Payment method, before the payment is settled. An automatic payment accepts it only together with SUCCEEDED.',
  }),
  metadata: metadataMap.nullish(),
  succeeded_at: timestampText
    .nullish()
    .meta({ description: 'Time at which the money was received; only with SUCCEEDED, and not in the future.' }),
  failed_at: timestampText
    .nullish()
    .meta({ description: 'Time of the failure; only with FAILED, and not in the future.' }),
  voided_at: timestampText
    .nullish()
    .meta({ description: 'Time of the void; only with VOIDED, and not in the future.' }),
  refunded_at: timestampText.nullish().meta({ description: 'Refused: a refund sets its time.' }),
  reason: z.string().min(1).max(1000).nullish().meta({
    description:
      'Reason of a decision about a payment or refund whose outcome the provider cannot tell; at most 1000 characters. Refused while the connection is active, unless the last query needs a person or the provider no longer has the payment.',
  }),
  pending_refunds: z.enum(['succeeded', 'failed']).nullish().meta({
    description: 'Outcome of the pending refunds; only with `reason`.',
  }),
  error_message: z
    .string()
    .max(1000)
    .nullish()
    .meta({ description: 'Reason of the failure for people; at most 1000 characters.' }),
});
export type UpdatePayment = z.output<typeof updatePaymentShape>;

/** Keys of automatic refunds of money that the invoice did not need. A payment has at most one such refund. */
const OVERPAYMENT_KEYS = /^surplus\/pay_/;

/** Whether a refund returns money that the invoice never counted as paid. */
export function isOverpaymentKey(idempotency_key: string): boolean {
  return OVERPAYMENT_KEYS.test(idempotency_key);
}

export const refundPaymentShape = z.object({
  amount: orNull(decimalText).meta({ description: 'Amount of the refund. Default: the rest of the payment.' }),
  reason: orNull(z.string().max(1000)).meta({ description: 'Reason for people; at most 1000 characters.' }),
  idempotency_key: orNull(keyNotMatching(OVERPAYMENT_KEYS)).meta({
    description:
      'Idempotency key: one key creates one refund of the payment. Without a key, equal refunds within a minute count as one refund.',
  }),
});
export type RefundPayment = z.output<typeof refundPaymentShape>;

export const savePaymentMethodShape = z.object({
  payment_gateway: gateway,
  gateway_payment_method_id: keyText.min(1).meta({ description: "Provider's id of the payment method." }),
  payment_method_type: orDefault(anyCase(['CARD', 'ACH']), 'CARD').meta({
    description: 'Type of the payment method: CARD or ACH. Default: CARD.',
  }),
  is_default: orDefault(z.boolean(), true).meta({
    description: 'Whether invoices are collected with this payment method from now on. Default: true.',
  }),
});
export type SavePaymentMethod = z.output<typeof savePaymentMethodShape>;

const NOT_SUPPORTED = 'Not supported yet: refused unless empty.';

export const startCardSetupShape = z.object({
  provider: anyCase(PAYMENT_GATEWAYS).meta({ description: 'Provider that saves the payment method.' }),
  usage: orDefault(z.enum(['off_session']), 'off_session').meta({
    description: 'Must be off_session: later charges are made while the customer is not present.',
  }),
  payment_method_types: orDefault(z.array(z.enum(['card'])).min(1), ['card']).meta({
    description: 'Kinds of payment methods that the customer can enter: card.',
  }),
  success_url: url.meta({
    description:
      'URL to which the page leads after the setup. With this URL the answer has a page of the provider; without it, the answer has a secret for a form of your own.',
  }),
  cancel_url: url,
  set_default: orDefault(z.boolean(), false).meta({
    description: 'Whether invoices are collected with the payment method from then on. Default: false.',
  }),
  metadata: anythingOrNull.meta({ description: NOT_SUPPORTED }),
  customer_data: anythingOrNull.meta({ description: NOT_SUPPORTED }),
});
export type StartCardSetup = z.output<typeof startCardSetupShape>;

/** Setup at a provider: a form in which the customer enters a payment method. */
export const startedCardSetupShape = z.object({
  provider: z.enum(PAYMENT_GATEWAYS).meta({ description: 'Provider that saves the payment method.' }),
  customer_id: z.string().meta({ description: 'Customer that owns the payment method.' }),
  setup_intent_id: z.string().meta({ description: 'Id of the setup, or of its page, at the provider.' }),
  checkout_url: z.string().nullable().meta({
    description: 'Page on which the customer enters the payment method; null without `success_url`.',
  }),
  client_secret: z.string().nullable().meta({
    description: "Secret of the setup for the provider's form on a page of your own; null with `success_url`.",
  }),
});
