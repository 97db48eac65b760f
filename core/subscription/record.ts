/**
 * A subscription and its line items: who pays for which prices, in which periods. The shapes and the rules of one record
 * alone. Moves between states: core/subscription.
 *
 * Of the types one is spelled small, and so are all statuses: the interface has them so.
 */
import { z } from 'zod';
import { criticalFields } from '../price/record.ts';
import {
  anyCase,
  baseFields,
  decimalText,
  int32,
  keyText,
  metadata,
  metadataMap,
  orNull,
  timestampText,
  wholeNumber,
  withoutEffect,
} from '../record.ts';
import { isTimezone } from '../time/zone.ts';

export const SUBSCRIPTION_STATUSES = ['active', 'trialing', 'incomplete', 'draft', 'cancelled', 'paused'] as const;
export const SUBSCRIPTION_TYPES = [
  'STANDALONE',
  'PARENT',
  'INHERITED',
  'DELEGATED_INVOICING',
  'grouped_invoicing',
] as const;
export const BILLING_CYCLES = ['anniversary', 'calendar'] as const;
/** A subscription repeats; ONETIME is a period of prices and of their line items only. */
export const SUBSCRIPTION_PERIODS = ['MONTHLY', 'ANNUAL', 'WEEKLY', 'DAILY', 'QUARTERLY', 'HALF_YEARLY'] as const;
export const LINE_ITEM_PERIODS = [...SUBSCRIPTION_PERIODS, 'ONETIME'] as const;
export const COLLECTION_METHODS = ['charge_automatically', 'send_invoice'] as const;
export const PAYMENT_BEHAVIORS = [
  'allow_incomplete',
  'default_incomplete',
  'error_if_incomplete',
  'default_active',
] as const;
export const PAYMENT_TERMS = ['15 NET', '30 NET', '45 NET', '60 NET', '75 NET', '90 NET'] as const;
export const PRORATION_BEHAVIORS = ['create_prorations', 'none'] as const;
export const CANCELLATION_TYPES = ['immediate', 'end_of_period', 'scheduled_date'] as const;
export const CANCEL_INVOICE_POLICIES = ['generate_invoice', 'skip'] as const;
export const LINE_ITEM_ENTITY_TYPES = ['plan', 'addon', 'subscription'] as const;

export type SubscriptionStatus = (typeof SUBSCRIPTION_STATUSES)[number];
export type PaymentBehavior = (typeof PAYMENT_BEHAVIORS)[number];
export type CollectionMethod = (typeof COLLECTION_METHODS)[number];

export const Subscription = z.object({
  id: z.string(),
  customer_id: z.string(),
  /** Who the invoices are addressed to; null means the customer. */
  invoicing_customer_id: z.string().nullish(),
  plan_id: z.string(),
  lookup_key: z.string().nullish(),
  subscription_status: z.enum(SUBSCRIPTION_STATUSES),
  subscription_type: z.enum(SUBSCRIPTION_TYPES),
  parent_subscription_id: z.string().nullish(),
  currency: z.string(),
  billing_cycle: z.enum(BILLING_CYCLES),
  billing_cadence: z.literal('RECURRING'),
  billing_period: z.enum(SUBSCRIPTION_PERIODS),
  billing_period_count: z.int().min(1),
  billing_anchor: timestampText,
  /** IANA zone of every date calculation. */
  timezone: z.string(),
  start_date: timestampText,
  /** Exclusive; null is open. Never after it is anything billed. */
  end_date: timestampText.nullish(),
  /** The period that is running and not yet invoiced in arrears: half-open [start, end). The scheduler moves it. */
  current_period_start: timestampText,
  current_period_end: timestampText,
  cancel_at: timestampText.nullish(),
  cancelled_at: timestampText.nullish(),
  cancel_at_period_end: z.boolean(),
  trial_start: timestampText.nullish(),
  trial_end: timestampText.nullish(),
  collection_method: z.enum(COLLECTION_METHODS),
  payment_behavior: z.enum(PAYMENT_BEHAVIORS),
  gateway_payment_method_id: z.string().nullish(),
  payment_terms: z.enum(PAYMENT_TERMS).nullish(),
  proration_behavior: z.enum(PRORATION_BEHAVIORS),
  commitment_amount: decimalText.nullish(),
  commitment_duration: z.enum(SUBSCRIPTION_PERIODS).nullish(),
  overage_factor: decimalText.nullish(),
  enable_true_up: z.boolean(),
  auto_invoice_threshold: decimalText.nullish(),
  /** Highest price sequence of the plan that the line items know. */
  synced_price_sequence: z.int().nullish(),
  metadata: metadata.nullish(),
  /** Optimistic lock: every change adds one and names the version it read. */
  version: z.int(),
  ...baseFields,
});
export type Subscription = z.infer<typeof Subscription>;

export const SubscriptionLineItem = z.object({
  id: z.string(),
  subscription_id: z.string(),
  customer_id: z.string(),
  /** Where the price came from: the plan, an add-on, or the subscription itself (an extra line). */
  entity_id: z.string().nullish(),
  entity_type: z.enum(LINE_ITEM_ENTITY_TYPES).nullish(),
  plan_display_name: z.string().nullish(),
  price_id: z.string(),
  price_type: z.enum(['USAGE', 'FIXED']),
  meter_id: z.string().nullish(),
  meter_display_name: z.string().nullish(),
  price_unit_id: z.string().nullish(),
  price_unit: z.string().nullish(),
  display_name: z.string().nullish(),
  /** Units of a fixed price; 0 for a usage price, whose quantity is measured. */
  quantity: decimalText,
  currency: z.string(),
  billing_period: z.enum(LINE_ITEM_PERIODS),
  billing_period_count: z.int().min(1),
  invoice_cadence: z.enum(['ARREAR', 'ADVANCE']),
  /** Half-open [start, end): nothing outside of it is billed. */
  start_date: timestampText,
  end_date: timestampText.nullish(),
  subscription_phase_id: z.string().nullish(),
  addon_association_id: z.string().nullish(),
  trial_period_days: z.int().min(0),
  commitment_amount: decimalText.nullish(),
  commitment_quantity: decimalText.nullish(),
  commitment_type: z.enum(['amount', 'quantity']).nullish(),
  commitment_overage_factor: decimalText.nullish(),
  commitment_true_up_enabled: z.boolean(),
  commitment_windowed: z.boolean(),
  commitment_duration: z.enum(SUBSCRIPTION_PERIODS).nullish(),
  metadata: metadata.nullish(),
  ...baseFields,
});
export type SubscriptionLineItem = z.infer<typeof SubscriptionLineItem>;

/** One entry per price: what this subscription pays instead of the plan's own terms. */
export const overrideLineItemShape = z.object({
  price_id: z.string(),
  quantity: orNull(decimalText),
  ...criticalFields,
});

/** A line beside the plan's: a price that exists, its own dates and quantity. */
export const extraLineItemShape = z.object({
  price_id: orNull(z.string()),
  price: orNull(z.record(z.string(), z.unknown())),
  quantity: orNull(decimalText),
  start_date: orNull(timestampText),
  end_date: orNull(timestampText),
  display_name: orNull(keyText),
  metadata,
  subscription_phase_id: orNull(z.string()),
  // A line of a new subscription is always charged for its own dates.
  proration_behavior: withoutEffect,
  commitment_amount: orNull(decimalText),
  commitment_quantity: orNull(decimalText),
  commitment_type: orNull(z.string()),
  commitment_overage_factor: orNull(decimalText),
  commitment_true_up_enabled: orNull(z.boolean()),
  commitment_windowed: orNull(z.boolean()),
  commitment_duration: orNull(z.string()),
  commitment_time_buckets: orNull(z.array(z.unknown())),
});

const anything = orNull(z.unknown());

/** What a client states about a new subscription. */
export const createSubscriptionShape = z.object({
  customer_id: orNull(z.string()),
  external_customer_id: orNull(z.string()),
  plan_id: z.string().min(1),
  lookup_key: orNull(keyText),
  currency: z.string().length(3),
  start_date: orNull(timestampText),
  end_date: orNull(timestampText),
  billing_cadence: orNull(anyCase(['RECURRING'])),
  billing_period: anyCase(SUBSCRIPTION_PERIODS),
  billing_period_count: orNull(int32.refine((count) => count >= 1, { error: 'must be at least 1' })),
  billing_cycle: orNull(anyCase(BILLING_CYCLES)),
  billing_anchor: orNull(timestampText).meta({
    description:
      'Periods end at this instant and whole days, weeks, months, quarters or years before and after it, by the clock of the timezone. Only with billing_cycle anniversary; the start when absent. A first period that it shortens is charged for its share.',
  }),
  timezone: orNull(z.string().refine(isTimezone, { error: 'must be an IANA timezone such as Europe/Berlin' })),
  /** The published client's name of `timezone`. */
  customer_timezone: orNull(z.string().refine(isTimezone, { error: 'must be an IANA timezone such as Europe/Berlin' })),
  collection_method: orNull(anyCase([...COLLECTION_METHODS, 'default_incomplete'])),
  payment_behavior: orNull(anyCase(PAYMENT_BEHAVIORS)),
  payment_terms: orNull(anyCase(PAYMENT_TERMS)),
  gateway_payment_method_id: orNull(z.string()),
  proration_behavior: orNull(anyCase(PRORATION_BEHAVIORS)),
  subscription_status: orNull(anyCase(['active', 'draft'])),
  metadata,
  override_line_items: orNull(z.array(overrideLineItemShape)),
  line_items: orNull(z.array(extraLineItemShape).max(100)),
  trial_period_days: orNull(int32.refine((days) => days >= 0, { error: 'must not be negative' })),
  trial_start: orNull(timestampText),
  trial_end: orNull(timestampText),
  auto_invoice_threshold: orNull(decimalText),
  commitment_amount: orNull(decimalText),
  commitment_duration: orNull(anyCase(SUBSCRIPTION_PERIODS)),
  overage_factor: orNull(decimalText),
  enable_true_up: orNull(z.boolean()),
  credit_grants: anything,
  tax_rate_overrides: anything,
  subscription_coupons: anything,
  coupons: anything,
  line_item_coupons: anything,
  line_item_commitments: anything,
  override_entitlements: anything,
  addons: anything,
  phases: anything,
  inheritance: anything,
  checkout: anything,
  invoice_billing: orNull(anyCase(['invoice_to_parent', 'invoice_to_self'])),
  parent_subscription_id: orNull(z.string()),
});
export type CreateSubscription = z.output<typeof createSubscriptionShape>;

/** What may be changed on a subscription as it stands; everything else has a verb of its own. */
export const updateSubscriptionShape = z.object({
  metadata: metadataMap.nullish(),
  lookup_key: keyText.nullish(),
  /** The version that was read: given, a change in between is a version_conflict. */
  version: wholeNumber.nullish(),
  status: anything,
  subscription_status: anything,
  cancel_at: anything,
  cancel_at_period_end: anything,
  parent_subscription_id: anything,
  auto_invoice_threshold: orNull(decimalText),
});
export type UpdateSubscription = z.output<typeof updateSubscriptionShape>;
