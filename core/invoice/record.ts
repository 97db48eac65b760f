/**
 * An invoice and its line items: what was charged, for which period, and what each amount was computed from, so that it
 * can be derived again (docs/rules/invoices.md, "What a line was computed from"). Its verbs are in actions/.
 */
import { z } from 'zod';
import { CommitmentInfo } from '../commitment/info.ts';
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
} from '../record.ts';
import { LineTax } from '../tax/line-tax.ts';
import { ComputedFrom } from './computed-from.ts';
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
  invoice_id: z.string().meta({ description: 'The invoice on which it stands; empty in a preview.' }),
  customer_id: z.string().meta({ description: 'The customer to whom the invoice goes.' }),
  subscription_id: z.string().nullish().meta({ description: 'The subscription that is charged; null without one.' }),
  subscription_line_item_id: z
    .string()
    .nullish()
    .meta({ description: 'The line item of the subscription that is charged; null without one.' }),
  parent_line_item_id: z
    .string()
    .nullish()
    .meta({ description: 'Of a correction for late events: the line that it corrects.' }),
  entity_id: z
    .string()
    .nullish()
    .meta({ description: 'The plan, the subscription or the add-on from which the price comes.' }),
  entity_type: z.string().nullish().meta({ description: 'What `entity_id` names.' }),
  plan_display_name: z.string().nullish().meta({ description: 'The name of the plan; null without one.' }),
  price_id: z
    .string()
    .nullish()
    .meta({ description: 'The price that was charged; null of a line that was written by hand without one.' }),
  price_type: z.string().nullish().meta({ description: 'USAGE was measured by a meter, FIXED was stated.' }),
  meter_id: z.string().nullish(),
  meter_display_name: z.string().nullish().meta({ description: 'The name of the meter; null of a FIXED price.' }),
  price_unit_id: z.string().nullish().meta({ description: 'Price units are not there yet: null.' }),
  price_unit: z.string().nullish().meta({ description: 'As it was stated by hand; null else.' }),
  price_unit_amount: decimalText.nullish().meta({ description: 'As it was stated by hand; null else.' }),
  display_name: z.string().nullish().meta({ description: 'What people read.' }),
  quantity: decimalText.meta({ description: 'How many units were charged.' }),
  amount: decimalText.meta({ description: 'What they cost, rounded to the currency.' }),
  currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
  period_start: timestampText
    .nullish()
    .meta({ description: 'The start of the time that is charged; null without one.' }),
  period_end: timestampText.nullish().meta({ description: 'The end of that time, which is not in it.' }),
  prepaid_credits_applied: decimalText.meta({
    description: 'What prepaid credits paid of it before taxes; negative of what a line gives back.',
  }),
  line_item_discount: decimalText.meta({ description: 'What coupons of the line take off it.' }),
  invoice_level_discount: decimalText.meta({ description: 'Its share of what coupons take off the invoice.' }),
  tax_amount: decimalText.meta({ description: 'Its share of the tax that is added to the invoice.' }),
  included_tax_amount: decimalText.meta({ description: 'Its share of the tax that is in the amounts already.' }),
  taxes: z.array(LineTax).nullish().meta({ description: 'The same, rate by rate; null without tax.' }),
  adjusted_entitlement_quantity: decimalText
    .nullish()
    .meta({ description: 'Units that were used and that entitlements make free; null where nothing is granted.' }),
  commitment_info: CommitmentInfo.nullish().meta({
    description: 'What the line is committed to, and what became of it; null without a commitment.',
  }),
  metadata: metadata.nullish().meta({ description: 'Pairs of your own; null without.' }),
  computed_from: ComputedFrom.nullish().meta({
    description: 'What the amount was computed from; null of a line that was written by hand.',
  }),
  ...baseFields,
});
export type InvoiceLineItem = z.infer<typeof InvoiceLineItem>;

export const Invoice = z.object({
  id: z.string(),
  customer_id: z.string().meta({ description: 'The customer to whom it goes.' }),
  subscription_id: z.string().nullish().meta({ description: 'The subscription that is charged; null without one.' }),
  subscription_customer_id: z
    .string()
    .nullish()
    .meta({ description: 'Who uses, by the subscription; null of an invoice that was written by hand.' }),
  invoice_type: z
    .enum(INVOICE_TYPES)
    .meta({ description: 'SUBSCRIPTION, ONE_OFF (written by hand) or CREDIT (its amounts may be negative).' }),
  invoice_status: z.enum(INVOICE_STATUSES).meta({
    description: 'A DRAFT can be computed anew; FINALIZED and VOIDED stay as they are; SKIPPED has nothing to pay.',
  }),
  payment_status: z.enum(PAYMENT_STATUSES).meta({ description: 'How far it is paid.' }),
  billing_reason: z.enum(BILLING_REASONS).meta({ description: 'Why the invoice was made.' }),
  currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
  subtotal: decimalText.meta({ description: 'The sum of its lines, in units of the currency, as decimal text.' }),
  total_discount: decimalText.meta({ description: 'What coupons take off.' }),
  total_prepaid_credits_applied: decimalText.meta({
    description:
      'What prepaid credits paid of it before taxes, when it became final; below 0 where lines give back more of them than others use.',
  }),
  total_tax: decimalText.meta({
    description: 'What taxes add; of a draft what it gives back alone, because it is taxed when it becomes final.',
  }),
  total: decimalText.meta({
    description:
      'max(0, subtotal − discounts − credits + tax); of a CREDIT invoice the sum of its lines, which is negative.',
  }),
  adjustment_amount: decimalText.meta({ description: 'Adjustments are not there yet: 0.' }),
  amount_due: decimalText.meta({ description: 'What is to be paid in all: the total less adjustments.' }),
  amount_paid: decimalText.meta({ description: 'What was paid in all, with `total_credits_applied_after_tax`.' }),
  total_credits_applied_after_tax: decimalText.meta({
    description:
      'What credits that earlier invoices gave back with their tax paid of what remained when it became final; part of `amount_paid`.',
  }),
  amount_remaining: decimalText.meta({
    description: 'What remains to be paid: max(0, amount_due − amount_paid); of a CREDIT invoice its negative amount.',
  }),
  overpaid_amount: decimalText.nullish().meta({ description: 'What was paid too much; null when nothing was.' }),
  refunded_amount: decimalText.meta({
    description: 'What was given back of what was paid and of what prepaid credits gave.',
  }),
  prepaid_credits_returned: decimalText.meta({
    description:
      'What of `total_prepaid_credits_applied` returned to the lots it came from; part of `refunded_amount`.',
  }),
  invoice_number: z.string().nullish().meta({ description: 'Given when it becomes final, without gaps; null before.' }),
  idempotency_key: z.string().nullish().meta({ description: 'One key is one invoice, voided ones aside.' }),
  billing_sequence: z
    .int()
    .nullish()
    .meta({ description: '1, 2, 3 … of the invoices of the subscription; null of one that was written by hand.' }),
  description: z.string().nullish().meta({ description: 'For people.' }),
  billing_period: z
    .string()
    .nullish()
    .meta({ description: 'The period of the subscription, such as MONTHLY; null without one.' }),
  period_start: timestampText
    .nullish()
    .meta({ description: 'The start of the period that ended or was opened; null without one.' }),
  period_end: timestampText.nullish().meta({ description: 'The end of that period, which is not in it.' }),
  issue_date: timestampText.nullish().meta({ description: 'As it was stated; null without.' }),
  due_date: timestampText
    .nullish()
    .meta({ description: 'Until when it is to be paid; null until it is final, unless stated.' }),
  paid_at: timestampText.nullish().meta({ description: 'When it was paid; null before.' }),
  voided_at: timestampText.nullish().meta({ description: 'When it was voided; null while it was not.' }),
  finalized_at: timestampText.nullish().meta({ description: 'When it became final; null before.' }),
  last_computed_at: timestampText
    .nullish()
    .meta({ description: 'When its lines were last computed, or were written by hand.' }),
  invoice_pdf_url: z
    .string()
    .nullish()
    .meta({ description: 'The address of its document, as it was stated; null without.' }),
  recalculated_invoice_id: z
    .string()
    .nullish()
    .meta({ description: 'The invoice that bills the period of this one, which is void, again; null without.' }),
  is_manually_edited: z.boolean().meta({
    description:
      'Whether its lines or coupons were changed by hand: then they are not computed any more until it is recalculated.',
  }),
  metadata: metadata.nullish().meta({ description: 'Pairs of your own; null without.' }),
  version: z.int().meta({ description: 'Every change adds 1.' }),
  ...baseFields,
});
export type Invoice = z.infer<typeof Invoice>;
export type InvoiceWithLines = Invoice & { line_items: InvoiceLineItem[] };

const NOT_YET = { description: 'Not there yet: refused when it says something.' };
const anything = anythingOrNull.meta(NOT_YET);

export const createInvoiceLineShape = z.object({
  amount: decimalText.meta({
    description:
      'What the line costs, in units of the currency, with no more decimals than it has; negative of a CREDIT alone.',
  }),
  quantity: decimalText.meta({
    description: 'How many units it is for; not negative. The amount is not computed from it.',
  }),
  display_name: orNull(keyText).meta({ description: 'What people read.' }),
  entity_id: orNull(keyText).meta({
    description: 'The plan, the subscription or the add-on from which the price comes; it must exist.',
  }),
  entity_type: orNull(keyText).meta({
    description: 'What `entity_id` names, and required with it: plan, subscription or addon.',
  }),
  plan_id: orNull(keyText).meta({ description: 'The plan from which the price comes, where `entity_id` names none.' }),
  plan_display_name: orNull(keyText).meta({ description: 'The name of the plan, as people read it.' }),
  price_id: orNull(keyText).meta({ description: 'Of a SUBSCRIPTION invoice required; it must exist.' }),
  price_type: orNull(keyText).meta({
    description: 'USAGE or FIXED: the summary of a customer tells unpaid charges apart by it.',
  }),
  meter_id: orNull(keyText),
  meter_display_name: orNull(keyText).meta({ description: 'The name of the meter, as people read it.' }),
  price_unit: orNull(keyText).meta({ description: 'Kept and answered.' }),
  price_unit_amount: orNull(decimalText).meta({ description: 'Kept and answered.' }),
  subscription_id: orNull(keyText).meta({
    description: 'The subscription that is charged; that of the invoice when absent.',
  }),
  subscription_line_item_id: orNull(keyText).meta({
    description: 'The line item of the subscription that is charged.',
  }),
  period_start: orNull(timestampText).meta({ description: 'The start of the time that is charged.' }),
  period_end: orNull(timestampText).meta({ description: 'The end of that time, not before its start.' }),
  metadata,
  commitment_info: anything,
  prepaid_credits_applied: orNull(decimalText).meta(NOT_YET),
  line_item_discount: orNull(decimalText).meta(NOT_YET),
  invoice_level_discount: orNull(decimalText).meta(NOT_YET),
  adjusted_entitlement_quantity: orNull(decimalText).meta(NOT_YET),
});
export type CreateInvoiceLine = z.output<typeof createInvoiceLineShape>;

/** `AUTO_INVOICE_THRESHOLD` is an older spelling of THRESHOLD_BILLING. */
export const billingReason = z.preprocess(
  (input) =>
    typeof input === 'string' && input.toUpperCase() === 'AUTO_INVOICE_THRESHOLD' ? 'THRESHOLD_BILLING' : input,
  anyCase(BILLING_REASONS),
);
/** `PAID` is the display word for SUCCEEDED. */
export const paymentStatus = z.preprocess(
  (input) => (typeof input === 'string' && input.toUpperCase() === 'PAID' ? 'SUCCEEDED' : input),
  anyCase(PAYMENT_STATUSES),
);

/** What a client states about an invoice that it writes itself (docs/rules/invoices.md, "Invoices written by hand"). */
export const createInvoiceShape = z.object({
  customer_id: z.string().min(1).meta({ description: 'The customer to whom it goes.' }),
  subscription_id: orNull(keyText).meta({
    description: 'Of a SUBSCRIPTION invoice: the subscription that is charged.',
  }),
  invoice_number: orNull(z.string()).meta({ description: 'Refused: it is given when the invoice becomes final.' }),
  idempotency_key: orNull(keyNotMatching(RESERVED_INVOICE_KEYS)).meta({
    description: 'One key is one invoice, voided ones aside: a second request is refused with 409.',
  }),
  invoice_type: orDefault(anyCase(INVOICE_TYPES), 'ONE_OFF').meta({
    description:
      'ONE_OFF when absent; a SUBSCRIPTION invoice names subscription, billing period, start and end; amounts of a CREDIT may be negative.',
  }),
  currency: z.string().length(3).meta({ description: 'As ISO 4217 has it, in any case.' }),
  amount_due: decimalText.meta({ description: 'The sum of the lines; without lines the whole amount is one.' }),
  total: decimalText.meta({ description: 'The same as `amount_due`.' }),
  subtotal: decimalText.meta({ description: 'The same as `amount_due`.' }),
  description,
  due_date: orNull(timestampText).meta({
    description: 'Until when it is to be paid; set when it becomes final, if absent.',
  }),
  issue_date: orNull(timestampText).meta({ description: 'A date for its document.' }),
  billing_period: orNull(keyText).meta({ description: 'The period of the subscription, such as MONTHLY.' }),
  period_start: orNull(timestampText).meta({ description: 'The start of the time that is charged.' }),
  period_end: orNull(timestampText).meta({ description: 'The end of that time, not before its start.' }),
  billing_reason: orNull(billingReason).meta({ description: 'Why it was made; MANUAL when absent.' }),
  invoice_status: orDefault(anyCase(['DRAFT', 'FINALIZED']), 'DRAFT').meta({
    description: 'DRAFT when absent; FINALIZED is final at once.',
  }),
  payment_status: orNull(paymentStatus).meta({
    description:
      'PENDING when absent; SUCCEEDED, OVERPAID or FAILED of one that is FINALIZED and was paid, or tried, already.',
  }),
  amount_paid: orNull(decimalText).meta({
    description: 'What was paid in all; of SUCCEEDED the amount due, else 0, when absent.',
  }),
  total_prepaid_applied: orNull(decimalText).meta(NOT_YET),
  line_items: orNull(z.array(createInvoiceLineShape)).meta({
    description: 'What is charged; without lines the whole amount is one line.',
  }),
  metadata,
  invoice_pdf_url: orNull(webAddress).meta({ description: 'The address of its document.' }),
  ...invoiceDiscountFields,
  force_sync_invoice: orNull(z.boolean()).meta(NOT_YET),
});
export type CreateInvoice = z.output<typeof createInvoiceShape>;

export const updateInvoiceShape = z.object({
  due_date: timestampText.nullish().meta({ description: 'Until when it is to be paid; not in the past.' }),
  issue_date: timestampText.nullish().meta({ description: 'A date for its document.' }),
  invoice_pdf_url: webAddress.nullish().meta({ description: 'The address of its document.' }),
  metadata: metadataMap.nullish(),
  apply_discount: orNull(z.boolean()).meta(NOT_YET),
});
export type UpdateInvoice = z.output<typeof updateInvoiceShape>;

export const updateInvoicePaymentShape = z.object({
  payment_status: paymentStatus.meta({
    description: 'SUCCEEDED, OVERPAID, PENDING or FAILED; PAID is another word for SUCCEEDED.',
  }),
  amount: orNull(decimalText).meta({
    description:
      'What was paid in all: of SUCCEEDED exactly the amount due, of OVERPAID more, of PENDING and FAILED less.',
  }),
});
export type UpdateInvoicePayment = z.output<typeof updateInvoicePaymentShape>;
