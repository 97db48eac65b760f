/**
 * An invoice and its line items: the charges, their periods, and the inputs from which each amount can be derived again
 * (docs/rules/invoices.md, "What a line was computed from"). The operations are in actions/.
 */

import { z } from 'zod';
import { priceType } from '../../catalog/price/record.ts';
import { LineTax } from '../../catalog/tax/line-tax.ts';
import {
  anyCase,
  anythingOrNull,
  baseFields,
  decimalText,
  description,
  keyNotMatching,
  keyText,
  metadata,
  metadataMap,
  orDefault,
  orNull,
  timestampText,
  webAddress,
} from '../../foundation/record.ts';
import { adjustmentShape, buildAdjustments, taxAmountShape } from '../../rating/adjustment-fields.ts';
import { CommitmentInfo } from '../../rating/commitments/info.ts';
import { ComputedFrom } from '../../rating/computed-from.ts';
import { buildQuantityFields, quantityShape } from '../../rating/quantity-fields.ts';
import { invoiceDiscountFields } from './discount-fields.ts';
import { RESERVED_INVOICE_KEYS } from './own-key.ts';

export const INVOICE_TYPES = ['SUBSCRIPTION', 'ONE_OFF', 'CREDIT'] as const;
export const INVOICE_STATUSES = ['DRAFT', 'FINALIZED', 'VOIDED', 'SKIPPED'] as const;
export const PAYMENT_STATUSES = [
  'INITIATED',
  'PENDING',
  'PROCESSING',
  'SUCCEEDED',
  'OVERPAID',
  'FAILED',
  'REFUNDED',
  'PARTIALLY_REFUNDED',
  'VOIDED',
] as const;
export const BILLING_REASONS = [
  'SUBSCRIPTION_CREATE',
  'SUBSCRIPTION_CYCLE',
  'SUBSCRIPTION_UPDATE',
  'SUBSCRIPTION_TRIAL_START',
  'SUBSCRIPTION_TRIAL_END',
  'PRORATION',
  'MANUAL',
  'THRESHOLD_BILLING',
  'WALLET_AUTO_TOPUP',
] as const;

export type InvoiceStatus = (typeof INVOICE_STATUSES)[number];
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];
export type BillingReason = (typeof BILLING_REASONS)[number];

export const InvoiceLineItem = z.object({
  id: z.string(),
  invoice_id: z.string().meta({ description: 'Invoice of the line; empty in a preview.' }),
  customer_id: z.string().meta({ description: 'Customer who receives the invoice.' }),
  subscription_id: z.string().nullish().meta({ description: 'Subscription that is charged; null without one.' }),
  subscription_line_item_id: z
    .string()
    .nullish()
    .meta({ description: 'Line item of the subscription that is charged; null without one.' }),
  parent_line_item_id: z
    .string()
    .nullish()
    .meta({ description: 'Line that this correction for late events corrects; null for any other line.' }),
  entity_id: z.string().nullish().meta({ description: 'Plan, subscription or add-on that owns the price.' }),
  entity_type: z.string().nullish().meta({ description: 'Kind of record that `entity_id` names.' }),
  plan_display_name: z.string().nullish().meta({ description: 'Name of the plan; null without one.' }),
  price_id: z
    .string()
    .nullish()
    .meta({ description: 'Price that was charged; null for a manual line without a price.' }),
  price_type: z
    .string()
    .nullish()
    .meta({ description: 'Type of the price. USAGE was measured by a meter; FIXED had a given quantity.' }),
  meter_id: z.string().nullish(),
  meter_display_name: z.string().nullish().meta({ description: 'Name of the meter; null for a FIXED price.' }),
  price_unit_id: z
    .string()
    .nullish()
    .meta({ description: 'Price unit of a CUSTOM price; null for a FIAT price and for a manual line.' }),
  price_unit: z.string().nullish().meta({
    description: 'Code of the unit of a CUSTOM price, or value from the request of a manual line; else null.',
  }),
  price_unit_amount: decimalText.nullish().meta({
    description: 'Amount in the unit of a CUSTOM price, or value from the request of a manual line; else null.',
  }),
  display_name: z.string().nullish().meta({ description: 'Text on the invoice.' }),
  quantity: decimalText.meta({ description: 'Number of charged units.' }),
  amount: decimalText.meta({ description: 'Cost of the units before discounts and taxes, rounded to the currency.' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
  period_start: timestampText.nullish().meta({ description: 'Start of the charged period; null without one.' }),
  period_end: timestampText.nullish().meta({ description: 'Exclusive end of the charged period.' }),
  ...adjustmentShape,
  ...taxAmountShape,
  taxes: z.array(LineTax).nullish().meta({ description: 'Taxes of the line, one entry per rate; null without tax.' }),
  ...quantityShape,
  commitment_info: CommitmentInfo.nullish().meta({
    description: 'Commitment of the line and its result; null without a commitment.',
  }),
  metadata: metadata.nullish().meta({ description: 'Your own key-value pairs; null without any.' }),
  computed_from: ComputedFrom.nullish().meta({
    description: 'Inputs of the amount; null for a manual line.',
  }),
  ...baseFields,
});
export type InvoiceLineItem = z.infer<typeof InvoiceLineItem>;

export const Invoice = z.object({
  id: z.string(),
  customer_id: z.string().meta({ description: 'Customer who receives the invoice.' }),
  subscription_id: z.string().nullish().meta({ description: 'Subscription that is charged; null without one.' }),
  subscription_customer_id: z
    .string()
    .nullish()
    .meta({ description: 'Customer of the subscription, whose usage is charged; null for a manual invoice.' }),
  invoice_type: z
    .enum(INVOICE_TYPES)
    .meta({ description: 'Type: SUBSCRIPTION, ONE_OFF (manual) or CREDIT (its amounts may be negative).' }),
  invoice_status: z.enum(INVOICE_STATUSES).meta({
    description: 'Status. A DRAFT can be recomputed; FINALIZED and VOIDED do not change; SKIPPED has nothing to pay.',
  }),
  payment_status: z.enum(PAYMENT_STATUSES).meta({ description: 'Progress of the payment.' }),
  billing_reason: z.enum(BILLING_REASONS).meta({ description: 'Reason why the invoice was created.' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
  subtotal: decimalText.meta({ description: 'Sum of the lines in currency units, as decimal text.' }),
  total_discount: decimalText.meta({ description: 'Discount by coupons.' }),
  total_prepaid_credits_applied: decimalText.meta({
    description:
      'Amount that prepaid credits paid before taxes, applied at finalization. Below 0 if some lines return more credits than the other lines use.',
  }),
  total_tax: decimalText.meta({
    description: 'Tax added, computed at finalization. On a draft only the tax of credited lines, which is negative.',
  }),
  total: decimalText.meta({
    description:
      'Total: max(0, subtotal − discounts − credits + tax). For a CREDIT invoice the sum of its lines, which may be negative.',
  }),
  adjustment_amount: decimalText.meta({
    description:
      'Amount that credit notes of the type ADJUSTMENT deduct from `amount_due`, without the prepaid credits that they return. `total` does not change.',
  }),
  amount_due: decimalText.meta({ description: 'Amount to pay in all: the total minus adjustments.' }),
  amount_paid: decimalText.meta({ description: 'Amount paid in all, including `total_credits_applied_after_tax`.' }),
  total_credits_applied_after_tax: decimalText.meta({
    description: 'Amount paid at finalization by credits that include tax; part of `amount_paid`.',
  }),
  amount_remaining: decimalText.meta({
    description:
      'Amount that remains to be paid: max(0, amount_due − amount_paid). For a CREDIT invoice its negative amount.',
  }),
  overpaid_amount: decimalText.nullish().meta({ description: 'Excess payment; null without one.' }),
  refunded_amount: decimalText.meta({
    description:
      'Amount returned by refunds of payments, credit notes and the void: to the payment method, a wallet or the lots of prepaid credits. A refund of `overpaid_amount` is not part of it.',
  }),
  prepaid_credits_returned: decimalText.meta({
    description: 'Part of `total_prepaid_credits_applied` that returned to the lots; part of `refunded_amount`.',
  }),
  invoice_number: z
    .string()
    .nullish()
    .meta({ description: 'Number without gaps, assigned at finalization; null before.' }),
  idempotency_key: z
    .string()
    .nullish()
    .meta({ description: 'Idempotency key. It identifies one invoice, voided ones excepted.' }),
  billing_sequence: z.int().nullish().meta({
    description: 'Sequence number among the invoices of the subscription: 1, 2, 3 …; null for a manual invoice.',
  }),
  description: z.string().nullish().meta({ description: 'Description for readers.' }),
  billing_period: z
    .string()
    .nullish()
    .meta({ description: 'Billing period of the subscription, such as MONTHLY; null without one.' }),
  period_start: timestampText.nullish().meta({
    description:
      'Start of the billing period that opened (SUBSCRIPTION_CREATE) or ended (SUBSCRIPTION_CYCLE); each line has the period that it charges. Null without one.',
  }),
  period_end: timestampText
    .nullish()
    .meta({ description: 'Exclusive end of the billing period of `period_start`; null without one.' }),
  issue_date: timestampText.nullish().meta({ description: 'Issue date from the request; null without one.' }),
  due_date: timestampText
    .nullish()
    .meta({ description: 'Due date. Null until finalization, unless the request sets it.' }),
  paid_at: timestampText.nullish().meta({ description: 'Instant at which the invoice was paid in full; null before.' }),
  voided_at: timestampText.nullish().meta({ description: 'Instant at which the invoice was voided; null otherwise.' }),
  finalized_at: timestampText.nullish().meta({ description: 'Instant of the finalization; null before.' }),
  last_computed_at: timestampText
    .nullish()
    .meta({ description: 'Instant at which the lines were last computed or written by hand.' }),
  invoice_pdf_url: z
    .string()
    .nullish()
    .meta({ description: 'URL of the document from the request; null without one.' }),
  recalculated_invoice_id: z
    .string()
    .nullish()
    .meta({ description: 'Invoice that bills the period of this void invoice again; null without one.' }),
  is_manually_edited: z.boolean().meta({
    description: 'True if the lines or coupons were edited by hand. They are then not computed until a recalculation.',
  }),
  metadata: metadata.nullish().meta({ description: 'Your own key-value pairs; null without any.' }),
  version: z.int().meta({ description: 'Version number. Every change adds 1.' }),
  ...baseFields,
});
export type Invoice = z.infer<typeof Invoice>;
export type InvoiceWithLines = Invoice & { line_items: InvoiceLineItem[] };

const NOT_YET = { description: 'Not supported yet. A value with content is refused.' };
const COMPUTED = {
  readOnly: true,
  description: 'Computed when the invoice becomes final. A value other than 0 is refused.',
};
const anything = anythingOrNull.meta(NOT_YET);

export const createInvoiceLineShape = z.object({
  amount: decimalText.meta({
    description:
      'Cost of the line in currency units. More decimals than the currency are refused, and so is a negative amount unless the invoice is a CREDIT.',
  }),
  quantity: decimalText.meta({
    description: 'Number of units, not negative. The amount is not computed from it.',
  }),
  display_name: orNull(keyText).meta({ description: 'Text on the invoice.' }),
  entity_id: orNull(keyText).meta({
    description: 'Plan, subscription or add-on that owns the price. It must exist.',
  }),
  entity_type: orNull(keyText).meta({
    description: 'Kind of record that `entity_id` names: plan, subscription or addon. Required together with it.',
  }),
  plan_id: orNull(keyText).meta({ description: 'Plan that owns the price, if `entity_id` names none.' }),
  plan_display_name: orNull(keyText).meta({ description: 'Display name of the plan.' }),
  price_id: orNull(keyText).meta({
    description: 'Price of the line. It must exist. Required for a SUBSCRIPTION invoice.',
  }),
  price_type: orNull(priceType).meta({
    description: 'Type of the charge: USAGE or FIXED. The customer summary separates unpaid charges by this type.',
  }),
  meter_id: orNull(keyText),
  meter_display_name: orNull(keyText).meta({ description: 'Display name of the meter.' }),
  price_unit: orNull(keyText).meta({ description: 'Stored and returned unchanged.' }),
  price_unit_amount: orNull(decimalText).meta({ description: 'Stored and returned unchanged.' }),
  subscription_id: orNull(keyText).meta({
    description: 'Subscription that is charged. Default: the subscription of the invoice.',
  }),
  subscription_line_item_id: orNull(keyText).meta({
    description: 'Line item of the subscription that is charged.',
  }),
  period_start: orNull(timestampText).meta({ description: 'Start of the charged period.' }),
  period_end: orNull(timestampText).meta({ description: 'End of the charged period, not before the start.' }),
  metadata,
  commitment_info: anything,
  ...buildAdjustments(() => orNull(decimalText).meta(COMPUTED)),
  ...buildQuantityFields(() => orNull(decimalText).meta(NOT_YET)),
});
export type CreateInvoiceLine = z.output<typeof createInvoiceLineShape>;

/** Accepts `AUTO_INVOICE_THRESHOLD`, a legacy spelling of THRESHOLD_BILLING. */
export const billingReason = z.preprocess(
  (input) =>
    typeof input === 'string' && input.toUpperCase() === 'AUTO_INVOICE_THRESHOLD' ? 'THRESHOLD_BILLING' : input,
  anyCase(BILLING_REASONS),
);
/** Accepts `PAID`, the display name of SUCCEEDED. */
export const paymentStatus = z.preprocess(
  (input) => (typeof input === 'string' && input.toUpperCase() === 'PAID' ? 'SUCCEEDED' : input),
  anyCase(PAYMENT_STATUSES),
);

/** Request for a manual invoice (docs/rules/invoices.md, "Invoices written by hand"). */
export const createInvoiceShape = z.object({
  customer_id: z.string().min(1).meta({ description: 'Customer who receives the invoice.' }),
  subscription_id: orNull(keyText).meta({
    description: 'Subscription that is charged. Required for a SUBSCRIPTION invoice.',
  }),
  invoice_number: orNull(z.string()).meta({
    description: 'A value is refused, because the number is assigned at finalization.',
  }),
  idempotency_key: orNull(keyNotMatching(RESERVED_INVOICE_KEYS)).meta({
    description:
      'Idempotency key. It identifies one invoice, voided ones excepted; a second request is refused with 409. Keys in the form of the service’s own are refused.',
  }),
  invoice_type: orDefault(anyCase(INVOICE_TYPES), 'ONE_OFF').meta({
    description:
      'Type of the invoice. A SUBSCRIPTION invoice requires subscription, billing period, start and end. Amounts of a CREDIT may be negative. Default: ONE_OFF.',
  }),
  currency: z.string().length(3).meta({ description: 'Currency code (ISO 4217), case-insensitive.' }),
  amount_due: orNull(decimalText).meta({
    description:
      'Default: the sum of the lines; any other value is refused. Required without lines: the whole amount is then one line.',
  }),
  total: orNull(decimalText).meta({ description: 'Default: `amount_due`; any other value is refused.' }),
  subtotal: orNull(decimalText).meta({ description: 'Default: `amount_due`; any other value is refused.' }),
  description,
  due_date: orNull(timestampText).meta({
    description: 'Due date. Default: set at finalization.',
  }),
  issue_date: orNull(timestampText).meta({ description: 'Issue date on the document.' }),
  billing_period: orNull(keyText).meta({
    description: 'Billing period of the subscription, such as MONTHLY. Required for a SUBSCRIPTION invoice.',
  }),
  period_start: orNull(timestampText).meta({
    description: 'Start of the charged period. Required for a SUBSCRIPTION invoice.',
  }),
  period_end: orNull(timestampText).meta({
    description: 'End of the charged period, not before the start. Required for a SUBSCRIPTION invoice.',
  }),
  billing_reason: orNull(billingReason).meta({
    description: 'Reason for which the invoice is created. Default: MANUAL.',
  }),
  invoice_status: orDefault(anyCase(['DRAFT', 'FINALIZED']), 'DRAFT').meta({
    description: 'Initial status; FINALIZED is final at once. Default: DRAFT.',
  }),
  payment_status: orNull(paymentStatus).meta({
    description:
      'Payment status so far. SUCCEEDED, OVERPAID and FAILED are accepted for a FINALIZED invoice only. Default: PENDING.',
  }),
  amount_paid: orNull(decimalText).meta({
    description: 'Sum of all payments. Default: the amount due for SUCCEEDED, else 0.',
  }),
  total_prepaid_applied: orNull(decimalText).meta(COMPUTED),
  line_items: orNull(z.array(createInvoiceLineShape)).meta({
    description: 'Charges. Without lines the whole amount is one line.',
  }),
  metadata,
  invoice_pdf_url: orNull(webAddress).meta({ description: 'URL of the document.' }),
  ...invoiceDiscountFields,
  force_sync_invoice: orNull(z.boolean()).meta(NOT_YET),
});
export type CreateInvoice = z.output<typeof createInvoiceShape>;

export const updateInvoiceShape = z.object({
  due_date: timestampText.nullish().meta({ description: 'Due date; an instant in the past is refused.' }),
  issue_date: timestampText.nullish().meta({ description: 'Issue date on the document.' }),
  invoice_pdf_url: webAddress.nullish().meta({ description: 'URL of the document.' }),
  metadata: metadataMap.nullish(),
  apply_discount: orNull(z.boolean()).meta(NOT_YET),
});
export type UpdateInvoice = z.output<typeof updateInvoiceShape>;

export const updateInvoicePaymentShape = z.object({
  payment_status: paymentStatus.meta({
    description: 'New status: SUCCEEDED, OVERPAID, PENDING or FAILED. PAID stands for SUCCEEDED.',
  }),
  amount: orNull(decimalText).meta({
    description:
      'Sum of all payments: exactly the amount due for SUCCEEDED, more for OVERPAID, less for PENDING and FAILED.',
  }),
});
export type UpdateInvoicePayment = z.output<typeof updateInvoicePaymentShape>;
