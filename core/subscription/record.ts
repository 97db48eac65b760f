/**
 * A subscription and its line items: who pays for which prices, in which periods. The shapes and the rules of one record
 * alone. Moves between states: core/subscription.
 *
 * Of the types one is spelled small, and so are all statuses: the interface has them so.
 */
import { z } from 'zod';
import { ADDON_CADENCES } from '../addon/record.ts';
import {
  committedLineFields,
  committedSubscriptionFields,
  subscriptionCommitmentFields,
} from '../commitment/fields.ts';
import { lineItemCommitmentShape } from '../commitment/line-item-commitment.ts';
import { subscriptionCouponFields } from '../coupon/requested-coupons.ts';
import { ownCreditGrantFields } from '../credit-grant/record.ts';
import { overrideEntitlementShape } from '../entitlement/override.ts';
import {
  anyCase,
  anythingOrNull,
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
} from '../record.ts';
import { taxOverrides } from '../tax/overrides.ts';
import { isTimezone } from '../time/zone.ts';
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
export type ProrationBehavior = (typeof PRORATION_BEHAVIORS)[number];
export type CollectionMethod = (typeof COLLECTION_METHODS)[number];

const CHARGED = {
  description:
    'What its invoices are charged to: a way to pay that is kept of the customer, or what the provider calls it. Without, the default one of the customer.',
};

export const Subscription = z.object({
  id: z.string(),
  customer_id: z.string().meta({ description: 'The customer who uses.' }),
  invoicing_customer_id: z.string().nullish().meta({ description: 'To whom the invoices go; null is the customer.' }),
  plan_id: z.string().meta({ description: 'The plan whose prices were taken over at the start.' }),
  lookup_key: z.string().nullish().meta({ description: 'A name of your own.' }),
  subscription_status: z.enum(SUBSCRIPTION_STATUSES).meta({
    description:
      'A cancelled one stays so; one that is incomplete waits for the invoice that opened it, or ended its trial, to be paid.',
  }),
  subscription_type: z.enum(SUBSCRIPTION_TYPES).meta({
    description:
      'STANDALONE; a PARENT counts the usage of its INHERITED ones; DELEGATED_INVOICING is paid by another customer; grouped_invoicing is billed on the invoice of its parent.',
  }),
  parent_subscription_id: z
    .string()
    .nullish()
    .meta({ description: 'The parent of an INHERITED or grouped_invoicing one; null without.' }),
  currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
  billing_cycle: z.enum(BILLING_CYCLES).meta({
    description: 'anniversary: periods begin on the anchor; calendar: with the calendar’s weeks, months and years.',
  }),
  billing_cadence: z.literal('RECURRING').meta({ description: 'Every subscription is RECURRING.' }),
  billing_period: z
    .enum(SUBSCRIPTION_PERIODS)
    .meta({ description: 'How long a period is, times `billing_period_count`.' }),
  billing_period_count: z.int().min(1).meta({ description: 'How many of these make a period.' }),
  billing_anchor: timestampText.meta({
    description: 'Where periods end, and whole periods before and after it, by the clock of the timezone.',
  }),
  timezone: z.string().meta({ description: 'An IANA name: the clock of all its dates.' }),
  start_date: timestampText.meta({ description: 'From when on it is charged.' }),
  end_date: timestampText.nullish().meta({ description: 'Until when, exclusive; null is open.' }),
  current_period_start: timestampText.meta({ description: 'The start of the running period.' }),
  current_period_end: timestampText.meta({ description: 'The end of the running period, which is not in it.' }),
  cancel_at: timestampText
    .nullish()
    .meta({ description: 'When it ends, or has ended, by a cancellation; null without one.' }),
  cancelled_at: timestampText.nullish().meta({ description: 'When it was cancelled; null while it was not.' }),
  cancel_at_period_end: z.boolean().meta({ description: 'Whether it ends with the running period.' }),
  trial_start: timestampText.nullish().meta({ description: 'When its trial began or begins; null without one.' }),
  trial_end: timestampText.nullish().meta({ description: 'When its trial ends or has ended; null without one.' }),
  collection_method: z
    .enum(COLLECTION_METHODS)
    .meta({ description: 'Whether invoices are charged automatically or sent.' }),
  payment_behavior: z
    .enum(PAYMENT_BEHAVIORS)
    .meta({ description: 'What becomes of it until its opening invoice is paid.' }),
  gateway_payment_method_id: z.string().nullish().meta(CHARGED),
  payment_terms: z
    .enum(PAYMENT_TERMS)
    .nullish()
    .meta({ description: 'Days from the end of a period to the due date of its invoice; null is one day.' }),
  proration_behavior: z.enum(PRORATION_BEHAVIORS).meta({
    description:
      'With create_prorations a start before today is refused; what is not served is not charged either way.',
  }),
  ...committedSubscriptionFields,
  auto_invoice_threshold: decimalText.nullish().meta({
    description:
      'Usage of the running period is invoiced as soon as so much of it is not invoiced yet, in units of the currency; null is at its end alone.',
  }),
  synced_price_sequence: z
    .int()
    .nullish()
    .meta({ description: 'The last price of the plan that its line items know, by its `sequence`.' }),
  metadata: metadata.nullish().meta({ description: 'Pairs of your own; null without.' }),
  version: z.int().meta({ description: 'Every change adds 1.' }),
  ...baseFields,
});
export type Subscription = z.infer<typeof Subscription>;

export const SubscriptionLineItem = z.object({
  id: z.string(),
  subscription_id: z.string().meta({ description: 'The subscription that it is a part of.' }),
  customer_id: z.string().meta({ description: 'The customer who uses.' }),
  entity_id: z.string().nullish().meta({ description: 'The plan, add-on or subscription from which its price comes.' }),
  entity_type: z
    .enum(LINE_ITEM_ENTITY_TYPES)
    .nullish()
    .meta({ description: 'Whether its price comes from the plan, an add-on or the subscription itself.' }),
  plan_display_name: z
    .string()
    .nullish()
    .meta({ description: 'The name of the plan; null where the price comes from none.' }),
  price_id: z.string().meta({ description: 'The price that it charges.' }),
  price_type: z
    .enum(['USAGE', 'FIXED'])
    .meta({ description: 'USAGE is measured by a meter, FIXED is stated by the subscription.' }),
  meter_id: z.string().nullish(),
  meter_display_name: z.string().nullish().meta({ description: 'The name of the meter; null of a FIXED price.' }),
  price_unit_id: z.string().nullish().meta({ description: 'Of a price in a unit of your own; null else.' }),
  price_unit: z.string().nullish().meta({ description: 'Of a price in a unit of your own; null else.' }),
  display_name: z.string().nullish().meta({ description: 'What an invoice line is called.' }),
  quantity: decimalText.meta({
    description: 'Units of a FIXED price; 0 of a USAGE price, whose quantity is measured.',
  }),
  currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
  billing_period: z
    .enum(LINE_ITEM_PERIODS)
    .meta({ description: 'How long a period is, times `billing_period_count`; ONETIME is charged once.' }),
  billing_period_count: z.int().min(1).meta({ description: 'How many of these make a period.' }),
  invoice_cadence: z
    .enum(['ARREAR', 'ADVANCE'])
    .meta({ description: 'ARREAR is billed after the period, ADVANCE before it.' }),
  start_date: timestampText.meta({ description: 'From when on it is charged.' }),
  end_date: timestampText.nullish().meta({ description: 'Until when, exclusive; null is open.' }),
  subscription_phase_id: z.string().nullish().meta({ description: 'The phase that states it; null where none does.' }),
  addon_association_id: z
    .string()
    .nullish()
    .meta({ description: 'As what its add-on is attached; null of any other line.' }),
  trial_period_days: z.int().min(0).meta({ description: 'Days of trial that the price states.' }),
  ...committedLineFields,
  metadata: metadata.nullish().meta({ description: 'Pairs of your own; null without.' }),
  ...baseFields,
});
export type SubscriptionLineItem = z.infer<typeof SubscriptionLineItem>;

const NOT_YET = { description: 'Not there yet: refused when it says something.' };

/** An add-on that is attached: with a new subscription, or later. */
export const attachAddonShape = z.object({
  addon_id: z.string().min(1).meta({ description: 'A published add-on; one of type onetime is held once at a time.' }),
  quantity: orDefault(
    int32.refine((quantity) => quantity >= 1, { error: 'must be at least 1' }),
    1,
  ).meta({
    description: 'How often it is held: its fixed lines and its limits are times this. 1 when absent.',
  }),
  cadence: orDefault(anyCase(ADDON_CADENCES), 'recurring').meta({
    description: 'onetime: for the period in which it begins; recurring, also when absent: until it is detached.',
  }),
  proration_behavior: orNull(anyCase(PRORATION_BEHAVIORS)).meta({
    description:
      'create_prorations, also when absent: what it charges in advance for the rest of the running period is invoiced at once. none: it is charged from the next period on.',
  }),
  start_date: orNull(timestampText).meta({
    description: 'From when on it is held, not before the running period; now when absent.',
  }),
  end_date: orNull(timestampText).meta({ description: 'Until when, exclusive; open when absent.' }),
  override_line_items: orNull(z.array(overrideLineItemShape)).meta({
    description: 'What this subscription pays in the place of prices of the add-on.',
  }),
  line_item_commitments: orNull(z.record(z.string(), lineItemCommitmentShape)).meta({
    description: 'Commitments of its USAGE lines, by the id of the price of the add-on.',
  }),
  metadata: orNull(freeMap).meta({ description: 'Values of your own.' }),
});
export type AttachAddon = z.output<typeof attachAddonShape>;

const anything = anythingOrNull.meta(NOT_YET);

const termsShape = z.object({
  customer_id: orNull(z.string()).meta({
    description: 'The customer who uses, by its id; this or `external_customer_id`.',
  }),
  external_customer_id: orNull(z.string()).meta({ description: 'The customer by the id that its events name.' }),
  plan_id: z.string().min(1).meta({ description: 'The plan whose prices in the currency are taken over.' }),
  lookup_key: orNull(requiredKey).meta({ description: 'A name of your own.' }),
  currency: z
    .string()
    .length(3)
    .meta({ description: 'As ISO 4217 has it, in any case; the plan has at least one price in it.' }),
  start_date: orNull(timestampText).meta({
    description:
      'From when on it is charged; now when absent. Not before the instant at which another customer who was charged gave up the external id.',
  }),
  end_date: orNull(timestampText).meta({ description: 'Until when, exclusive; open when absent.' }),
  billing_cadence: orNull(anyCase(['RECURRING'])).meta({ description: 'Every subscription is RECURRING.' }),
  billing_period: anyCase(SUBSCRIPTION_PERIODS).meta({
    description: 'How long a period is, times `billing_period_count`.',
  }),
  billing_period_count: orNull(int32.refine((count) => count >= 1, { error: 'must be at least 1' })).meta({
    description: 'How many of these make a period; 1 when absent.',
  }),
  billing_cycle: orNull(anyCase(BILLING_CYCLES)).meta({
    description:
      'anniversary: periods begin on the anchor; calendar: with the calendar’s weeks, months and years. anniversary when absent.',
  }),
  billing_anchor: orNull(timestampText).meta({
    description:
      'Periods end at this instant and whole days, weeks, months, quarters or years before and after it, by the clock of the timezone. Only with billing_cycle anniversary; the start when absent. A first period that it shortens is charged for its share.',
  }),
  timezone: orNull(z.string().refine(isTimezone, { error: 'must be an IANA timezone such as Europe/Berlin' })).meta({
    description: 'An IANA name, the clock of all its dates; that of the customer when absent, else UTC.',
  }),
  customer_timezone: orNull(
    z.string().refine(isTimezone, { error: 'must be an IANA timezone such as Europe/Berlin' }),
  ).meta({ description: 'Another name of `timezone`.' }),
  collection_method: orNull(anyCase([...COLLECTION_METHODS, 'default_incomplete'])).meta({
    description: 'Whether invoices are charged automatically or sent; charge_automatically when absent.',
  }),
  payment_behavior: orNull(anyCase(PAYMENT_BEHAVIORS)).meta({
    description: 'What becomes of it until its opening invoice is paid; default_active, active at once, when absent.',
  }),
  payment_terms: orNull(anyCase(PAYMENT_TERMS)).meta({
    description: 'Days from the end of a period to the due date of its invoice; one day when absent.',
  }),
  gateway_payment_method_id: orNull(keyText).meta(CHARGED),
  proration_behavior: orNull(anyCase(PRORATION_BEHAVIORS)).meta({
    description:
      'With create_prorations a start before today is refused; what is not served is not charged either way.',
  }),
  subscription_status: orNull(anyCase(['active', 'draft'])).meta({
    description: 'A draft is not charged until it is activated; active when absent.',
  }),
  metadata,
  override_line_items: orNull(z.array(overrideLineItemShape)).meta({
    description: 'What this subscription pays in the place of prices of the plan.',
  }),
  line_items: orNull(z.array(extraLineItemShape).max(100)).meta({
    description: 'Prices beside those of the plan, with dates and quantities of their own.',
  }),
  trial_period_days: orNull(int32.refine((days) => days >= 0, { error: 'must not be negative' })).meta({
    description:
      'Days of trial from the start, at the clock of the timezone; 0 is none. When absent, those that the recurring FIXED prices of the plan state, which must agree. Not with dates of a trial.',
  }),
  trial_start: orNull(timestampText).meta({ description: 'The start of a trial, not after `start_date`.' }),
  trial_end: orNull(timestampText).meta({ description: 'The end of that trial, not before `start_date`.' }),
  auto_invoice_threshold: orNull(decimalText).meta({
    description:
      'Usage of the running period is invoiced as soon as so much of it is not invoiced yet, in units of the currency: zero or greater, of plans with usage prices alone. None when absent or 0.',
  }),
  ...subscriptionCommitmentFields,
  credit_grants: orNull(z.array(ownCreditGrantFields).max(100)).meta({
    description:
      'What gives it credits beside what its plan and its add-ons do, into the wallet that [credits](/docs/rules/credits.md#which-wallet) names.',
  }),
  tax_rate_overrides: taxOverrides.meta({
    description: 'What it is taxed with in the place of what its customer is.',
  }),
  ...subscriptionCouponFields,
  line_item_commitments: orNull(z.record(z.string(), lineItemCommitmentShape)).meta({
    description: 'Commitments of lines that the plan brings, by the id of the price.',
  }),
  override_entitlements: orNull(z.array(overrideEntitlementShape).max(100)).meta({
    description: 'What this subscription is granted in the place of entitlements of the plan.',
  }),
  addons: orNull(z.array(attachAddonShape).max(100)).meta({ description: 'Add-ons that it begins with.' }),
  phases: orNull(z.array(buildPhaseShape(overrideLineItemShape, extraLineItemShape)).max(100)).meta({
    description: 'Stretches with terms of their own, one after the other, from the start on; not for a draft.',
  }),
  checkout: anything,
});

/** What a client states about a new subscription. */
export const createSubscriptionShape = termsShape.extend({
  ...parentFields,
  inheritance: orNull(buildInheritanceShape(buildChildShape(termsShape))).meta({
    description: 'Who takes part in it, who pays for it, or what is invoiced with it: one of these.',
  }),
});
export type CreateSubscription = z.output<typeof createSubscriptionShape>;

/** What may be changed on a subscription as it stands; everything else has a verb of its own. */
export const updateSubscriptionShape = z.object({
  metadata: metadataMap.nullish(),
  lookup_key: optionalKey.optional().meta({ description: 'A name of your own.' }),
  version: wholeNumber
    .nullish()
    .meta({ description: 'The version that was read: given, a change in between is a version_conflict.' }),
  status: orNull(anyCase([...SUBSCRIPTION_STATUSES, 'published'])).meta({
    description: 'As it is; another one has a request of its own (`activate`, `cancel`).',
  }),
  subscription_status: orNull(anyCase(SUBSCRIPTION_STATUSES)).meta({ description: 'The same as `status`.' }),
  cancel_at: orNull(timestampText).meta({
    description: 'Cancels it on a date that lies ahead; that at which it is to be cancelled already changes nothing.',
  }),
  cancel_at_period_end: orNull(z.boolean()).meta({
    description:
      'true cancels it at the end of its period, false takes that back; what it says already changes nothing.',
  }),
  parent_subscription_id: orNull(z.string()).meta({
    description: 'Has a standalone subscription invoiced with this one from now on; its parent changes nothing.',
  }),
  auto_invoice_threshold: decimalText.nullish().meta({
    description:
      'As of a new subscription, zero or greater; 0 or null takes it away. Of a STANDALONE subscription with usage lines alone.',
  }),
});
export type UpdateSubscription = z.output<typeof updateSubscriptionShape>;
