/**
 * A subscription and its line items: the payer, the prices and the billing periods. This file has the shapes and the
 * rules of a single record; the allowed changes of status are in moves.ts.
 * All subscription statuses and the subscription type grouped_invoicing are lowercase, as the public API defines them.
 */
import { z } from 'zod';
import { ADDON_CADENCES } from '../catalog/addon/record.ts';
import { subscriptionCouponFields } from '../catalog/coupon/requested-coupons.ts';
import { ownCreditGrantFields } from '../catalog/credit-grant/record.ts';
import { checkoutParamsShape } from '../catalog/customer/checkout-params.ts';
import { overrideEntitlementShape } from '../catalog/entitlement/override.ts';
import { taxOverrides } from '../catalog/tax/overrides.ts';
import {
  anyCase,
  baseFields,
  decimalText,
  freeMap,
  int32,
  keyText,
  metadata,
  metadataMap,
  optionalKey,
  orDefault,
  orNull,
  requiredKey,
  timestampText,
  wholeNumber,
} from '../foundation/record.ts';
import { isTimezone } from '../foundation/time/zone.ts';
import {
  committedLineFields,
  committedSubscriptionFields,
  subscriptionCommitmentFields,
} from '../rating/commitments/fields.ts';
import { lineItemCommitmentShape } from '../rating/commitments/line-item-commitment.ts';
import { buildChildShape, buildInheritanceShape, parentFields } from './inheritance.ts';
import { extraLineItemShape, overrideLineItemShape } from './line-shapes.ts';
import { buildPhaseShape } from './phase-shape.ts';

export const SUBSCRIPTION_STATUSES = ['active', 'trialing', 'incomplete', 'draft', 'cancelled', 'paused'] as const;
export const SUBSCRIPTION_TYPES = [
  'STANDALONE',
  'PARENT',
  'INHERITED',
  'DELEGATED_INVOICING',
  'grouped_invoicing',
] as const;
export const BILLING_CYCLES = ['anniversary', 'calendar'] as const;
/** Subscriptions recur; ONETIME is a period of prices and of their line items only. */
export const SUBSCRIPTION_PERIODS = ['MONTHLY', 'ANNUAL', 'WEEKLY', 'DAILY', 'QUARTERLY', 'HALF_YEARLY'] as const;
export const LINE_ITEM_PERIODS = [...SUBSCRIPTION_PERIODS, 'ONETIME'] as const;
export const COLLECTION_METHODS = ['charge_automatically', 'send_invoice'] as const;
export const PAYMENT_BEHAVIORS = [
  'allow_incomplete',
  'default_incomplete',
  'error_if_incomplete',
  'default_active',
] as const;
const PAYMENT_TERMS = ['15 NET', '30 NET', '45 NET', '60 NET', '75 NET', '90 NET'] as const;
export const PRORATION_BEHAVIORS = ['create_prorations', 'none'] as const;
export const CANCELLATION_TYPES = ['immediate', 'end_of_period', 'scheduled_date'] as const;
export const CANCEL_INVOICE_POLICIES = ['generate_invoice', 'skip'] as const;
export const LINE_ITEM_ENTITY_TYPES = ['plan', 'addon', 'subscription'] as const;

export type SubscriptionStatus = (typeof SUBSCRIPTION_STATUSES)[number];
export type PaymentBehavior = (typeof PAYMENT_BEHAVIORS)[number];
export type ProrationBehavior = (typeof PRORATION_BEHAVIORS)[number];
export type CollectionMethod = (typeof COLLECTION_METHODS)[number];

const CHARGED = {
  description:
    'Payment method that invoices are charged to: a stored method of the customer, or its id at the payment provider. Default: the default method of the customer.',
};

export const Subscription = z.object({
  id: z.string(),
  customer_id: z.string().meta({ description: 'Customer whose usage is charged.' }),
  invoicing_customer_id: z
    .string()
    .nullish()
    .meta({ description: 'Customer who receives the invoices. Null if that is the customer in `customer_id`.' }),
  plan_id: z.string().meta({ description: 'Plan whose prices were taken over at the start.' }),
  lookup_key: z.string().nullish().meta({ description: 'Your own name of the subscription. It must be unique.' }),
  subscription_status: z.enum(SUBSCRIPTION_STATUSES).meta({
    description:
      'Status. cancelled is final. incomplete waits for payment of the invoice that opened it or ended its trial.',
  }),
  subscription_type: z.enum(SUBSCRIPTION_TYPES).meta({
    description:
      'Relation to other subscriptions. STANDALONE has none. A PARENT counts the usage of its INHERITED subscriptions. DELEGATED_INVOICING is paid by another customer. grouped_invoicing is billed on the invoice of its parent.',
  }),
  parent_subscription_id: z
    .string()
    .nullish()
    .meta({ description: 'Parent of an INHERITED or grouped_invoicing subscription; null without one.' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
  billing_cycle: z.enum(BILLING_CYCLES).meta({
    description:
      'Alignment of periods. With anniversary, periods begin on the anchor. With calendar, they begin with calendar weeks, months and years.',
  }),
  billing_cadence: z.literal('RECURRING').meta({ description: 'Every subscription is RECURRING.' }),
  billing_period: z
    .enum(SUBSCRIPTION_PERIODS)
    .meta({ description: 'Unit of the billing period. A period is `billing_period_count` of these units long.' }),
  billing_period_count: z.int().min(1).meta({ description: 'Number of units in a billing period.' }),
  billing_anchor: timestampText.meta({
    description:
      'Instant at which one period ends. The other periods end whole periods before or after that instant, in local time of the timezone.',
  }),
  timezone: z.string().meta({ description: 'IANA timezone of all dates of the subscription.' }),
  start_date: timestampText.meta({ description: 'Instant from which the subscription is charged.' }),
  end_date: timestampText.nullish().meta({ description: 'Exclusive end; null without an end.' }),
  current_period_start: timestampText.meta({ description: 'Start of the running period.' }),
  current_period_end: timestampText.meta({ description: 'Exclusive end of the running period.' }),
  cancel_at: timestampText
    .nullish()
    .meta({ description: 'Instant at which a cancellation ends or has ended the subscription; null without one.' }),
  cancelled_at: timestampText
    .nullish()
    .meta({ description: 'Instant of the cancellation; null if it is not cancelled.' }),
  cancel_at_period_end: z
    .boolean()
    .meta({ description: 'True if a cancellation ends the subscription with the running period.' }),
  trial_start: timestampText.nullish().meta({ description: 'Start of the trial; null without a trial.' }),
  trial_end: timestampText.nullish().meta({ description: 'End of the trial; null without a trial.' }),
  collection_method: z
    .enum(COLLECTION_METHODS)
    .meta({ description: 'Collection of invoices: charged automatically, or sent.' }),
  payment_behavior: z.enum(PAYMENT_BEHAVIORS).meta({ description: 'Behavior until the opening invoice is paid.' }),
  gateway_payment_method_id: z.string().nullish().meta(CHARGED),
  payment_terms: z.enum(PAYMENT_TERMS).nullish().meta({
    description: 'Days from the end of a period to the due date of the period’s invoice. Null means one day.',
  }),
  proration_behavior: z.enum(PRORATION_BEHAVIORS).meta({
    description:
      'Proration of changes. With create_prorations a start before today is refused. With both values, time outside the subscription is not charged.',
  }),
  ...committedSubscriptionFields,
  auto_invoice_threshold: decimalText.nullish().meta({
    description:
      'Amount in currency units. When uninvoiced usage of the running period reaches it, that usage is invoiced at once. Null invoices usage at the end of the period only.',
  }),
  synced_price_sequence: z
    .int()
    .nullish()
    .meta({ description: 'Greatest `sequence` of the plan’s prices that are included in the line items.' }),
  metadata: metadata.nullish().meta({ description: 'Your own key-value pairs; null without any.' }),
  version: z.int().meta({ description: 'Version number. Every change adds 1.' }),
  ...baseFields,
});
export type Subscription = z.infer<typeof Subscription>;

export const SubscriptionLineItem = z.object({
  id: z.string(),
  subscription_id: z.string().meta({ description: 'Subscription of the line item.' }),
  customer_id: z.string().meta({ description: 'Customer whose usage is charged.' }),
  entity_id: z.string().nullish().meta({ description: 'Plan, add-on or subscription that owns the price.' }),
  entity_type: z
    .enum(LINE_ITEM_ENTITY_TYPES)
    .nullish()
    .meta({ description: 'Owner of the price: the plan, an add-on or the subscription itself.' }),
  plan_display_name: z
    .string()
    .nullish()
    .meta({ description: 'Name of the plan. Null if the price belongs to no plan.' }),
  price_id: z.string().meta({ description: 'Price that the line item charges.' }),
  price_type: z.enum(['USAGE', 'FIXED']).meta({
    description: 'Type of the price. USAGE is measured by a meter; FIXED has the quantity of the subscription.',
  }),
  meter_id: z.string().nullish(),
  meter_display_name: z.string().nullish().meta({ description: 'Name of the meter; null for a FIXED price.' }),
  price_unit_id: z
    .string()
    .nullish()
    .meta({ description: 'Id of the price unit of a price in a custom unit; else null.' }),
  price_unit: z
    .string()
    .nullish()
    .meta({ description: 'Code of the price unit of a price in a custom unit; else null.' }),
  display_name: z.string().nullish().meta({ description: 'Description of the line item’s invoice lines.' }),
  quantity: decimalText.meta({
    description: 'Units of a FIXED price. A USAGE price has 0, because its quantity is measured.',
  }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
  billing_period: z.enum(LINE_ITEM_PERIODS).meta({
    description:
      'Unit of the billing period. A period is `billing_period_count` of these units long. ONETIME is charged once.',
  }),
  billing_period_count: z.int().min(1).meta({ description: 'Number of units in a billing period.' }),
  invoice_cadence: z
    .enum(['ARREAR', 'ADVANCE'])
    .meta({ description: 'ARREAR is billed after the period, ADVANCE before it.' }),
  start_date: timestampText.meta({ description: 'Instant from which the line item is charged.' }),
  end_date: timestampText.nullish().meta({ description: 'Exclusive end; null without an end.' }),
  subscription_phase_id: z
    .string()
    .nullish()
    .meta({ description: 'Phase that defines the line item; null without one.' }),
  addon_association_id: z
    .string()
    .nullish()
    .meta({ description: 'Association of the line item’s add-on; null for any other line item.' }),
  trial_period_days: z.int().min(0).meta({ description: 'Trial days of the price.' }),
  ...committedLineFields,
  metadata: metadata.nullish().meta({ description: 'Your own key-value pairs; null without any.' }),
  ...baseFields,
});
export type SubscriptionLineItem = z.infer<typeof SubscriptionLineItem>;

/** An add-on that is attached to a new or an existing subscription. */
export const attachAddonShape = z.object({
  addon_id: z
    .string()
    .min(1)
    .meta({ description: 'Published add-on. An add-on of type onetime can be attached once at a time.' }),
  quantity: orDefault(
    int32.refine((quantity) => quantity >= 1, { error: 'must be at least 1' }),
    1,
  ).meta({
    description: 'Multiplier of the add-on’s fixed lines and limits, at least 1. Default: 1.',
  }),
  cadence: orDefault(anyCase(ADDON_CADENCES), 'recurring').meta({
    description:
      'Duration of the attachment. onetime lasts for the period in which it begins; recurring lasts until it is detached. Default: recurring.',
  }),
  proration_behavior: orNull(anyCase(PRORATION_BEHAVIORS)).meta({
    description:
      'Proration of advance charges. create_prorations invoices the rest of the running period at once; none charges from the next period. Default: create_prorations.',
  }),
  start_date: orNull(timestampText).meta({
    description: 'Start of the attachment, not before the running period. Default: now.',
  }),
  end_date: orNull(timestampText).meta({ description: 'Exclusive end. Default: no end.' }),
  override_line_items: orNull(z.array(overrideLineItemShape)).meta({
    description: 'Terms for this subscription instead of the add-on’s prices.',
  }),
  line_item_commitments: orNull(z.record(z.string(), lineItemCommitmentShape)).meta({
    description: 'Commitments of the add-on’s USAGE lines, by the id of the add-on’s price.',
  }),
  metadata: orNull(freeMap).meta({ description: 'Your own key-value pairs.' }),
});
export type AttachAddon = z.output<typeof attachAddonShape>;

const termsShape = z.object({
  customer_id: orNull(z.string()).meta({
    description: 'Customer whose usage is charged, by id. Either this field or `external_customer_id` is required.',
  }),
  external_customer_id: orNull(z.string()).meta({ description: 'Customer, by the external id in its events.' }),
  plan_id: z
    .string()
    .min(1)
    .meta({ description: 'Plan whose prices in the currency become the lines of the subscription.' }),
  lookup_key: orNull(requiredKey).meta({ description: 'Your own name of the subscription. It must be unique.' }),
  currency: z
    .string()
    .length(3)
    .meta({ description: 'Currency code (ISO 4217), case-insensitive. The plan must have at least one price in it.' }),
  start_date: orNull(timestampText).meta({
    description:
      'Instant from which the subscription is charged. Default: now. Refused if another customer, who is charged, had the same external id at or after that time.',
  }),
  end_date: orNull(timestampText).meta({ description: 'Exclusive end. Default: no end.' }),
  billing_cadence: orNull(anyCase(['RECURRING'])).meta({ description: 'Every subscription is RECURRING.' }),
  billing_period: anyCase(SUBSCRIPTION_PERIODS).meta({
    description: 'Unit of the billing period. A period is `billing_period_count` of these units long.',
  }),
  billing_period_count: orNull(int32.refine((count) => count >= 1, { error: 'must be at least 1' })).meta({
    description: 'Number of units in a billing period, at least 1. Default: 1.',
  }),
  billing_cycle: orNull(anyCase(BILLING_CYCLES)).meta({
    description:
      'Alignment of periods. With anniversary, periods begin on the anchor. With calendar, they begin with calendar weeks, months and years. Default: anniversary.',
  }),
  billing_anchor: orNull(timestampText).meta({
    description:
      'Instant at which periods end. Further periods end whole days, weeks, months, quarters or years before and after it, in local time. Default: the start. It is refused with billing_cycle calendar. A shortened first period is prorated.',
  }),
  timezone: orNull(z.string().refine(isTimezone, { error: 'must be an IANA timezone such as Europe/Berlin' })).meta({
    description: 'IANA timezone of all dates of the subscription. Default: the timezone of the customer, else UTC.',
  }),
  customer_timezone: orNull(
    z.string().refine(isTimezone, { error: 'must be an IANA timezone such as Europe/Berlin' }),
  ).meta({ description: 'Alternative name of `timezone`.' }),
  collection_method: orNull(anyCase([...COLLECTION_METHODS, 'default_incomplete'])).meta({
    description: 'Collection of invoices: charged automatically, or sent. Default: charge_automatically.',
  }),
  payment_behavior: orNull(anyCase(PAYMENT_BEHAVIORS)).meta({
    description: 'Behavior until the opening invoice is paid. Default: default_active, which is active at once.',
  }),
  payment_terms: orNull(anyCase(PAYMENT_TERMS)).meta({
    description: 'Days from the end of a period to the due date of the period’s invoice. Default: one day.',
  }),
  gateway_payment_method_id: orNull(keyText).meta(CHARGED),
  proration_behavior: orNull(anyCase(PRORATION_BEHAVIORS)).meta({
    description:
      'Proration of changes. With create_prorations a start before today is refused. With both values, time outside the subscription is not charged.',
  }),
  subscription_status: orNull(anyCase(['active', 'draft'])).meta({
    description: 'Initial status. A draft is not charged until it is activated. Default: active.',
  }),
  metadata,
  override_line_items: orNull(z.array(overrideLineItemShape)).meta({
    description: 'Terms for this subscription instead of the plan’s prices.',
  }),
  line_items: orNull(z.array(extraLineItemShape).max(100)).meta({
    description: 'Prices beside those of the plan, with their own dates and quantities. At most 100.',
  }),
  trial_period_days: orNull(int32.refine((days) => days >= 0, { error: 'must not be negative' })).meta({
    description:
      'Trial days from the start, in local time of the timezone; 0 is no trial. Default: the days of the plan’s recurring FIXED prices, which must agree. Trial dates in the same request are refused.',
  }),
  trial_start: orNull(timestampText).meta({
    description: 'Start of the trial, not after `start_date`. It requires `trial_end`.',
  }),
  trial_end: orNull(timestampText).meta({
    description: 'End of the trial, not before `start_date`. It requires `trial_start`.',
  }),
  auto_invoice_threshold: orNull(decimalText).meta({
    description:
      'Amount in currency units, zero or greater. When uninvoiced usage of the running period reaches it, that usage is invoiced at once. Default, and with 0: none. It is refused for plans with other than usage prices.',
  }),
  ...subscriptionCommitmentFields,
  credit_grants: orNull(z.array(ownCreditGrantFields).max(100)).meta({
    description:
      'Credit grants in addition to those of the plan and the add-ons, at most 100. [Credits](/docs/rules/credits.md#which-wallet) states which wallet gets them.',
  }),
  tax_rate_overrides: taxOverrides.meta({
    description: 'Tax rates of this subscription instead of those of its customer.',
  }),
  ...subscriptionCouponFields,
  line_item_commitments: orNull(z.record(z.string(), lineItemCommitmentShape)).meta({
    description: 'Commitments of the plan’s lines, by price id.',
  }),
  override_entitlements: orNull(z.array(overrideEntitlementShape).max(100)).meta({
    description: 'Entitlements of this subscription that replace those of the plan. At most 100.',
  }),
  addons: orNull(z.array(attachAddonShape).max(100)).meta({
    description: 'Add-ons with which the subscription begins. At most 100.',
  }),
  phases: orNull(z.array(buildPhaseShape(overrideLineItemShape, extraLineItemShape)).max(100)).meta({
    description:
      'Consecutive intervals with their own terms, from the start on. At most 100. A draft with phases is refused.',
  }),
  checkout: orNull(checkoutParamsShape).meta({
    description:
      'Page on which the customer pays the opening invoice; the subscription is incomplete until then. Default: none. Refused for drafts, future starts and relations to other subscriptions.',
  }),
});

export const createSubscriptionShape = termsShape.extend({
  ...parentFields,
  inheritance: orNull(buildInheritanceShape(buildChildShape(termsShape))).meta({
    description:
      'Relation to other subscriptions: shared usage, another payer or a shared invoice. Only one of these is accepted.',
  }),
});
export type CreateSubscription = z.output<typeof createSubscriptionShape>;

/** Fields that an update changes in place. Other changes have endpoints of their own. */
export const updateSubscriptionShape = z.object({
  metadata: metadataMap.nullish(),
  lookup_key: optionalKey.optional().meta({ description: 'Your own name of the subscription. It must be unique.' }),
  version: wholeNumber.nullish().meta({
    description:
      'Version that the caller read. If the record changed since, the request is refused with version_conflict.',
  }),
  status: orNull(anyCase([...SUBSCRIPTION_STATUSES, 'published'])).meta({
    description: 'Current status; any other is refused. Use `activate` or `cancel` to change it.',
  }),
  subscription_status: orNull(anyCase(SUBSCRIPTION_STATUSES)).meta({ description: 'Alternative name of `status`.' }),
  cancel_at: orNull(timestampText).meta({
    description:
      'Future instant at which the subscription is cancelled. To send the scheduled instant again changes nothing.',
  }),
  cancel_at_period_end: orNull(z.boolean()).meta({
    description:
      'With true the subscription is cancelled at the end of its period; false undoes that. To send the current value changes nothing.',
  }),
  parent_subscription_id: orNull(z.string()).meta({
    description:
      'Subscription whose invoice bills this standalone subscription from now on. To send the current parent changes nothing.',
  }),
  auto_invoice_threshold: decimalText.nullish().meta({
    description:
      'Amount in currency units that triggers an invoice, zero or greater; 0 or null removes it. It is refused unless the subscription is STANDALONE and has usage lines only.',
  }),
});
export type UpdateSubscription = z.output<typeof updateSubscriptionShape>;
