/**
 * A payment of an invoice, its attempts and its refunds; and the ways to pay that are kept of a customer (docs/rules/payments.md).
 * The shapes alone: moves.ts says what may follow what, schedule.ts when it is tried again.
 */
import { z } from 'zod';
import { PAYMENT_STATUSES } from '../invoice/record.ts';
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
} from '../record.ts';

export const PAYMENT_METHOD_TYPES = ['CARD', 'ACH', 'OFFLINE', 'CREDITS', 'PAYMENT_LINK'] as const;
export const DESTINATION_TYPES = ['INVOICE'] as const;
/** Of these `sandbox` is there; the others are refused by their names. */
export const PAYMENT_GATEWAYS = ['sandbox', 'stripe', 'razorpay', 'nomod', 'moyasar', 'paddle', 'whop'] as const;
export const PAYMENT_METHOD_STATUSES = ['ACTIVE', 'INACTIVE', 'EXPIRED'] as const;
export const REFUND_STATUSES = ['pending', 'succeeded', 'failed'] as const;

export type PaymentMethodType = (typeof PAYMENT_METHOD_TYPES)[number];
export type PaymentGateway = (typeof PAYMENT_GATEWAYS)[number];

export const Payment = z.object({
  id: z.string(),
  idempotency_key: z.string().meta({ description: 'One key is one payment.' }),
  customer_id: z.string().meta({ description: 'Who pays: the customer of the invoice.' }),
  destination_type: z.enum(DESTINATION_TYPES).meta({ description: 'What `destination_id` names: an invoice.' }),
  destination_id: z.string().meta({ description: 'The invoice that is paid.' }),
  invoice_number: z.string().nullish().meta({ description: 'The number of that invoice.' }),
  payment_method_type: z.enum(PAYMENT_METHOD_TYPES).meta({
    description:
      'OFFLINE was received elsewhere; CREDITS are taken from a postpaid wallet; CARD and ACH are charged; PAYMENT_LINK is paid on a page.',
  }),
  payment_method_id: z
    .string()
    .meta({ description: 'The way to pay as its provider calls it; empty where none is charged.' }),
  payment_gateway: z.enum(PAYMENT_GATEWAYS).nullish().meta({ description: 'The provider; null of OFFLINE.' }),
  amount: decimalText.meta({ description: 'How much, in units of the currency, as decimal text.' }),
  currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters: that of the invoice.' }),
  payment_status: z.enum(PAYMENT_STATUSES).meta({ description: 'How far it is.' }),
  track_attempts: z.boolean().meta({ description: 'Whether its attempts are kept: not of OFFLINE.' }),
  gateway_payment_id: z.string().nullish().meta({ description: 'The payment as its provider calls it; null before.' }),
  gateway_tracking_id: z
    .string()
    .nullish()
    .meta({ description: 'The key under which the provider was asked last: asked again, it charges nothing.' }),
  gateway_metadata: metadata.nullish().meta({ description: 'What its provider says of it; null without.' }),
  payment_url: z
    .string()
    .nullish()
    .meta({ description: 'Where the customer pays, or confirms the charge; null where there is nothing to do.' }),
  success_url: z.string().nullish().meta({ description: 'Where the page leads whoever has paid; null without.' }),
  cancel_url: z.string().nullish().meta({ description: 'Where the page leads whoever has not; null without.' }),
  metadata: metadata.nullish().meta({ description: 'Pairs of your own; null without.' }),
  succeeded_at: timestampText.nullish().meta({ description: 'When the money was received; null before.' }),
  failed_at: timestampText.nullish().meta({ description: 'When it failed for good; null before.' }),
  refunded_at: timestampText.nullish().meta({ description: 'When something was last given back; null before.' }),
  voided_at: timestampText.nullish().meta({ description: 'When it was voided; null while it was not.' }),
  error_message: z.string().nullish().meta({ description: 'Why it failed, or why its provider could not be asked.' }),
  save_card_and_make_default: z
    .boolean()
    .meta({ description: 'Whether the way to pay is kept for the customer once it has paid.' }),
  is_automatic: z.boolean().meta({ description: 'Whether it was made because an invoice became final.' }),
  attempt_count: z.int().meta({ description: 'How often it was tried.' }),
  refunded_amount: decimalText.meta({ description: 'What was given back of it.' }),
  next_attempt_at: timestampText
    .nullish()
    .meta({ description: 'When it is tried, or its provider is asked, next; null where nothing is left to do.' }),
  version: z.int().meta({ description: 'Every change adds 1.' }),
  ...baseFields,
});
export type Payment = z.infer<typeof Payment>;

export const PaymentAttempt = z.object({
  id: z.string(),
  payment_id: z.string().meta({ description: 'The payment that was tried.' }),
  attempt_number: z.int().meta({ description: 'Which try it was, counted from 1.' }),
  payment_status: z.enum(PAYMENT_STATUSES).meta({ description: 'How it ended; PROCESSING while it has not.' }),
  payment_method_id: z.string().meta({ description: 'What was charged.' }),
  amount: decimalText.meta({ description: 'How much was asked for.' }),
  error_message: z.string().nullish().meta({ description: 'Why it failed; null when it did not.' }),
  metadata: metadata.nullish().meta({ description: 'Nothing is kept there yet: null.' }),
  ...baseFields,
});
export type PaymentAttempt = z.infer<typeof PaymentAttempt>;

export const PaymentRefund = z.object({
  id: z.string(),
  payment_id: z.string().meta({ description: 'The payment of which it gives back.' }),
  amount: decimalText.meta({ description: 'How much is given back.' }),
  refund_status: z.enum(REFUND_STATUSES).meta({ description: 'pending until the provider has answered.' }),
  reason: z.string().nullish().meta({ description: 'For people.' }),
  gateway_refund_id: z.string().nullish().meta({ description: 'The refund as its provider calls it; null before.' }),
  error_message: z.string().nullish().meta({ description: 'Why it failed; null when it did not.' }),
  idempotency_key: z.string().meta({ description: 'One key is one refund of the payment.' }),
  ...baseFields,
});
export type PaymentRefund = z.infer<typeof PaymentRefund>;

export const PaymentMethod = z.object({
  id: z.string(),
  customer_id: z.string().meta({ description: 'Whose it is.' }),
  payment_gateway: z.enum(PAYMENT_GATEWAYS).meta({ description: 'The provider that knows it.' }),
  gateway_payment_method_id: z.string().meta({ description: 'What its provider calls it.' }),
  payment_method_type: z.enum(PAYMENT_METHOD_TYPES).meta({ description: 'CARD or ACH.' }),
  payment_method_status: z.enum(PAYMENT_METHOD_STATUSES).meta({ description: 'Only an ACTIVE one is charged.' }),
  is_default: z.boolean().meta({ description: 'Whether invoices are collected with it: one of a customer is.' }),
  ...baseFields,
});
export type PaymentMethod = z.infer<typeof PaymentMethod>;

const url = orNull(z.url()).meta({ description: 'Where the page of the provider leads then.' });
const gateway = orNull(anyCase(PAYMENT_GATEWAYS)).meta({
  description:
    'The provider; when absent that of the way to pay, else `default_gateway` of the setting `payment_config`.',
});

/** What a client states about a payment (docs/rules/payments.md, "Making a payment"). */
export const createPaymentShape = z.object({
  idempotency_key: orNull(keyText).meta({
    description: 'One key is one payment; when absent, equal payments within a minute are one.',
  }),
  destination_type: anyCase(DESTINATION_TYPES).meta({ description: 'INVOICE.' }),
  destination_id: z.string().min(1).meta({ description: 'The invoice, which is final and not paid.' }),
  payment_method_type: anyCase([...PAYMENT_METHOD_TYPES, 'UPI']).meta({
    description: 'OFFLINE, CREDITS, CARD, ACH or PAYMENT_LINK; UPI is refused.',
  }),
  payment_method_id: orNull(keyText).meta({
    description:
      'The way to pay, as kept of the customer or as the provider calls it; the default one when absent. Of CREDITS the wallet.',
  }),
  payment_gateway: gateway,
  amount: decimalText.meta({ description: 'More than 0, with no more decimals than the currency has.' }),
  currency: z.string().length(3).meta({ description: 'That of the invoice, in any case.' }),
  success_url: url,
  cancel_url: url,
  metadata,
  process_payment: orDefault(z.boolean(), true).meta({ description: 'Done at once; false waits for `process`.' }),
  save_card_and_make_default: orDefault(z.boolean(), false).meta({
    description: 'Keeps what has paid as the default way of the customer.',
  }),
  gateway_options: anythingOrNull.meta({ description: 'Not there yet: refused when it says something.' }),
});
export type CreatePayment = z.output<typeof createPaymentShape>;

export const updatePaymentShape = z.object({
  payment_status: anyCase(PAYMENT_STATUSES)
    .nullish()
    .meta({ description: 'SUCCEEDED, FAILED or VOIDED, where nobody else decides it.' }),
  amount: decimalText
    .nullish()
    .meta({ description: 'Before it is settled; of one that is collected by itself with SUCCEEDED alone.' }),
  payment_gateway: anyCase(PAYMENT_GATEWAYS)
    .nullish()
    .meta({ description: 'Before it is settled; of one that is collected by itself with SUCCEEDED alone.' }),
  gateway_payment_id: keyText.nullish().meta({ description: 'The payment as a provider calls it.' }),
  payment_method_id: keyText
    .nullish()
    .meta({ description: 'Before it is settled; of one that is collected by itself with SUCCEEDED alone.' }),
  metadata: metadataMap.nullish(),
  succeeded_at: timestampText.nullish().meta({ description: 'With SUCCEEDED: when the money was received.' }),
  failed_at: timestampText.nullish().meta({ description: 'With FAILED: when it failed.' }),
  voided_at: timestampText.nullish().meta({ description: 'With VOIDED: when it was voided.' }),
  refunded_at: timestampText.nullish().meta({ description: 'Refused: a refund says when it is made.' }),
  error_message: z.string().max(1000).nullish().meta({ description: 'Why it failed, for people.' }),
});
export type UpdatePayment = z.output<typeof updatePaymentShape>;

/** Of what goes back because its invoice does not need it any more: once for a payment. */
const OVERPAYMENT_KEYS = /^surplus\/pay_/;

export const refundPaymentShape = z.object({
  amount: orNull(decimalText).meta({ description: 'How much is given back; all that is left when absent.' }),
  reason: orNull(z.string().max(1000)).meta({ description: 'For people.' }),
  idempotency_key: orNull(keyNotMatching(OVERPAYMENT_KEYS)).meta({
    description: 'One key is one refund of the payment; when absent, equal refunds within a minute are one.',
  }),
});
export type RefundPayment = z.output<typeof refundPaymentShape>;

export const savePaymentMethodShape = z.object({
  payment_gateway: gateway,
  gateway_payment_method_id: keyText.min(1).meta({ description: 'What its provider calls it.' }),
  payment_method_type: orDefault(anyCase(['CARD', 'ACH']), 'CARD').meta({ description: 'CARD when absent, or ACH.' }),
  is_default: orDefault(z.boolean(), true).meta({ description: 'Whether invoices are collected with it from now on.' }),
});
export type SavePaymentMethod = z.output<typeof savePaymentMethodShape>;
