/**
 * An invoice and its line items: what was charged, for which period, and what each amount was computed from, so that it
 * can be derived again (docs/rules/invoices.md, "What a line was computed from"). Its verbs are in actions/.
 */
import { z } from 'zod';
import {
  anyCase,
  baseFields,
  decimalText,
  keyText,
  metadata,
  metadataMap,
  orDefault,
  orNull,
  timestampText,
} from '../record.ts';

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

/**
 * What a line's amount was derived from (docs/rules/invoices.md, "What a line was computed from"). Decimals are text. A
 * fixed line has only quantity and price; a usage line has all of it.
 */
export const ComputedFrom = z.object({
  /** The price as it was: a later edit of the price must not change what this line says. */
  price: z.record(z.string(), z.unknown()).nullish(),
  meter_id: z.string().nullish(),
  /** `updated_at` of the meter: which definition measured. */
  meter_version: z.string().nullish(),
  window_start: timestampText.nullish(),
  window_end: timestampText.nullish(),
  /** As measured, before the floor at zero and before free units. */
  quantity: z.string().nullish(),
  event_count: z.int().nullish(),
  /** Per partition, the log offset that the quantity includes up to (exclusive). */
  high_water: z.record(z.string(), z.string()).nullish(),
  as_of: z.string().nullish(),
  /** Per bucket of a bucketed meter: quantity and amount. */
  buckets: z.array(z.record(z.string(), z.unknown())).nullish(),
  /** How the amount came about: one entry per tier or package step. */
  breakdown: z.array(z.record(z.string(), z.unknown())).nullish(),
  /** Share of the period that was charged, when less than all of it. */
  proration: z.string().nullish(),
  /** Why this line exists when it is not the period's own charge, such as a late event. */
  reason: z.string().nullish(),
});
export type ComputedFrom = z.infer<typeof ComputedFrom>;

export const InvoiceLineItem = z.object({
  id: z.string(),
  invoice_id: z.string(),
  customer_id: z.string(),
  subscription_id: z.string().nullish(),
  subscription_line_item_id: z.string().nullish(),
  parent_line_item_id: z.string().nullish(),
  entity_id: z.string().nullish(),
  entity_type: z.string().nullish(),
  plan_display_name: z.string().nullish(),
  price_id: z.string().nullish(),
  price_type: z.string().nullish(),
  meter_id: z.string().nullish(),
  meter_display_name: z.string().nullish(),
  price_unit_id: z.string().nullish(),
  price_unit: z.string().nullish(),
  price_unit_amount: decimalText.nullish(),
  display_name: z.string().nullish(),
  quantity: decimalText,
  amount: decimalText,
  currency: z.string(),
  period_start: timestampText.nullish(),
  period_end: timestampText.nullish(),
  prepaid_credits_applied: decimalText,
  line_item_discount: decimalText,
  invoice_level_discount: decimalText,
  adjusted_entitlement_quantity: decimalText.nullish(),
  commitment_info: z.record(z.string(), z.unknown()).nullish(),
  metadata: metadata.nullish(),
  computed_from: ComputedFrom.nullish(),
  ...baseFields,
});
export type InvoiceLineItem = z.infer<typeof InvoiceLineItem>;

export const Invoice = z.object({
  id: z.string(),
  customer_id: z.string(),
  subscription_id: z.string().nullish(),
  /** Who uses, when the invoice is addressed to somebody else. */
  subscription_customer_id: z.string().nullish(),
  invoice_type: z.enum(INVOICE_TYPES),
  invoice_status: z.enum(INVOICE_STATUSES),
  payment_status: z.enum(PAYMENT_STATUSES),
  billing_reason: z.enum(BILLING_REASONS),
  currency: z.string(),
  /** Σ lines; then total = max(0, subtotal − discounts − credits + tax); amount_due = total − adjustments. */
  subtotal: decimalText,
  total_discount: decimalText,
  total_prepaid_credits_applied: decimalText,
  total_tax: decimalText,
  total: decimalText,
  adjustment_amount: decimalText,
  amount_due: decimalText,
  amount_paid: decimalText,
  amount_remaining: decimalText,
  overpaid_amount: decimalText.nullish(),
  refunded_amount: decimalText,
  invoice_number: z.string().nullish(),
  idempotency_key: z.string().nullish(),
  /** 1, 2, 3 … of the subscription's invoices. */
  billing_sequence: z.int().nullish(),
  description: z.string().nullish(),
  billing_period: z.string().nullish(),
  period_start: timestampText.nullish(),
  period_end: timestampText.nullish(),
  issue_date: timestampText.nullish(),
  due_date: timestampText.nullish(),
  paid_at: timestampText.nullish(),
  voided_at: timestampText.nullish(),
  finalized_at: timestampText.nullish(),
  last_computed_at: timestampText.nullish(),
  invoice_pdf_url: z.string().nullish(),
  recalculated_invoice_id: z.string().nullish(),
  is_manually_edited: z.boolean(),
  metadata: metadata.nullish(),
  version: z.int(),
  ...baseFields,
});
export type Invoice = z.infer<typeof Invoice>;
export type InvoiceWithLines = Invoice & { line_items: InvoiceLineItem[] };

const anything = orNull(z.unknown());

export const createInvoiceLineShape = z.object({
  amount: decimalText,
  quantity: decimalText,
  display_name: orNull(keyText),
  entity_id: orNull(keyText),
  entity_type: orNull(keyText),
  plan_id: orNull(keyText),
  plan_display_name: orNull(keyText),
  price_id: orNull(keyText),
  price_type: orNull(keyText),
  meter_id: orNull(keyText),
  meter_display_name: orNull(keyText),
  price_unit: orNull(keyText),
  price_unit_amount: orNull(decimalText),
  subscription_id: orNull(keyText),
  subscription_line_item_id: orNull(keyText),
  period_start: orNull(timestampText),
  period_end: orNull(timestampText),
  metadata,
  commitment_info: anything,
  prepaid_credits_applied: orNull(decimalText),
  line_item_discount: orNull(decimalText),
  invoice_level_discount: orNull(decimalText),
  adjusted_entitlement_quantity: orNull(decimalText),
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
  customer_id: z.string().min(1),
  subscription_id: orNull(keyText),
  invoice_number: orNull(z.string()),
  idempotency_key: orNull(z.string().max(255)),
  invoice_type: orDefault(anyCase(INVOICE_TYPES), 'ONE_OFF'),
  currency: z.string().length(3),
  amount_due: decimalText,
  total: decimalText,
  subtotal: decimalText,
  description: orNull(z.string()),
  due_date: orNull(timestampText),
  issue_date: orNull(timestampText),
  billing_period: orNull(keyText),
  period_start: orNull(timestampText),
  period_end: orNull(timestampText),
  billing_reason: orNull(billingReason),
  invoice_status: orDefault(anyCase(['DRAFT', 'FINALIZED']), 'DRAFT'),
  payment_status: orNull(paymentStatus),
  amount_paid: orNull(decimalText),
  total_prepaid_applied: orNull(decimalText),
  line_items: orNull(z.array(createInvoiceLineShape)),
  metadata,
  invoice_pdf_url: orNull(z.url()),
  coupons: anything,
  invoice_coupons: anything,
  line_item_coupons: anything,
  tax_rates: anything,
  tax_rate_overrides: anything,
  prepared_tax_rates: anything,
  force_sync_invoice: orNull(z.boolean()),
});
export type CreateInvoice = z.output<typeof createInvoiceShape>;

export const updateInvoiceShape = z.object({
  due_date: timestampText.nullish(),
  issue_date: timestampText.nullish(),
  invoice_pdf_url: z.url().nullish(),
  metadata: metadataMap.nullish(),
  apply_discount: orNull(z.boolean()),
});
export type UpdateInvoice = z.output<typeof updateInvoiceShape>;

export const updatePaymentShape = z.object({ payment_status: paymentStatus, amount: orNull(decimalText) });
export type UpdatePayment = z.output<typeof updatePaymentShape>;
