/** Requests and lists of subscriptions. */
import { z } from 'zod';
import { anyCase, decimalText, orDefault, orNull, timestampText } from '../../core/record.ts';
import {
  CANCEL_INVOICE_POLICIES,
  CANCELLATION_TYPES,
  createSubscriptionShape,
  LINE_ITEM_ENTITY_TYPES,
  LINE_ITEM_PERIODS,
  PRORATION_BEHAVIORS,
  SUBSCRIPTION_PERIODS,
  SUBSCRIPTION_STATUSES,
  SUBSCRIPTION_TYPES,
  updateSubscriptionShape,
} from '../../core/subscription/record.ts';
import { expand, type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';
import { InvoiceWithoutParts } from '../invoices/answer.ts';
import { PriceAnswer } from '../prices/schema.ts';
import { SubscriptionAnswer, SubscriptionLineItemAnswer } from './answer.ts';
import { subscriptionExpand } from './expand.ts';

export const CreateSubscription = createSubscriptionShape.meta({
  id: 'CreateSubscriptionRequest',
  example: {
    external_customer_id: 'acme',
    plan_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
    currency: 'usd',
    billing_period: 'MONTHLY',
    start_date: '2026-01-01T00:00:00Z',
  },
});
export const UpdateSubscription = updateSubscriptionShape.meta({
  id: 'UpdateSubscriptionRequest',
  example: { metadata: { contract: 'C-1001' } },
});
export const ActivateSubscription = z
  .object({ start_date: timestampText.meta({ description: 'From when on it is charged.' }) })
  .meta({ id: 'ActivateDraftSubscriptionRequest', example: { start_date: '2026-02-01T00:00:00Z' } });

/** `cancel_immediately_inovice_policy` is spelled so on the wire; the right spelling is understood as well. */
export const CancelSubscription = z
  .object({
    cancellation_type: anyCase(CANCELLATION_TYPES).meta({
      description: 'immediate, end_of_period (when the running one ends) or scheduled_date (at `cancel_at`).',
    }),
    cancel_at: orNull(timestampText).meta({
      description:
        'Of scheduled_date: in the future. Of immediate: now when absent, or a past instant of the running period.',
    }),
    cancel_immediately_inovice_policy: orNull(anyCase(CANCEL_INVOICE_POLICIES)).meta({
      description: 'Of immediate: generate_invoice, also when absent, invoices the arrears up to then; skip does not.',
    }),
    cancel_immediately_invoice_policy: orNull(anyCase(CANCEL_INVOICE_POLICIES)).meta({
      description: 'The same, spelled right.',
    }),
    proration_behavior: orDefault(anyCase(PRORATION_BEHAVIORS), 'none').meta({
      description:
        'none, also when absent: what was charged in advance stays charged. create_prorations credits what of it is not used to the prepaid wallet, when the subscription ends inside a period.',
    }),
    reason: orNull(z.string()).meta({ description: 'For people.' }),
  })
  .meta({
    id: 'CancelSubscriptionRequest',
    example: { cancellation_type: 'end_of_period', reason: 'moved to another plan' },
  });

const ProrationDetailAnswer = z
  .object({
    line_item_id: z.string().meta({ description: 'The line item that is credited.' }),
    price_id: z.string().meta({ description: 'Its price.' }),
    plan_name: z.string().nullable().meta({ description: 'The name of its plan; null without one.' }),
    original_amount: decimalText.meta({ description: 'What a whole period costs.' }),
    credit_amount: decimalText.meta({ description: 'What is given back.' }),
    charge_amount: decimalText.meta({ description: 'What is charged instead: 0.' }),
    proration_days: z.int().meta({ description: 'Days of the calendar that are not used.' }),
    description: z.string().meta({ description: 'What the line of the invoice is called.' }),
  })
  .meta({ id: 'ProrationDetail' });

export const CancelSubscriptionAnswer = z
  .object({
    subscription_id: z.string().meta({ description: 'The subscription that was cancelled.' }),
    cancellation_type: z.enum(CANCELLATION_TYPES).meta({ description: 'As it was asked for.' }),
    effective_date: timestampText.meta({ description: 'When it ends, or has ended.' }),
    status: z.enum(SUBSCRIPTION_STATUSES).meta({ description: 'active until it ends, then cancelled.' }),
    reason: z.string().nullable().meta({ description: 'As it was stated; null without.' }),
    proration_invoice: InvoiceWithoutParts.nullable().meta({
      description: 'The lines of what is credited; null where nothing is.',
    }),
    proration_details: z.array(ProrationDetailAnswer).meta({ description: 'What is credited of each line item.' }),
    total_credit_amount: decimalText.meta({
      description: 'What goes into the wallet: what was paid and not used; 0 when nothing of it was paid.',
    }),
    message: z.string().meta({ description: 'What was done, in a sentence.' }),
    processed_at: timestampText.meta({ description: 'When it was asked for.' }),
  })
  .meta({ id: 'CancelSubscriptionResponse' });

export const SubscriptionUsageRequest = z
  .object({
    subscription_id: z.string().min(1).meta({ description: 'The subscription whose usage is asked for.' }),
    start_time: orNull(timestampText).meta({
      description: 'Events at this instant or later; from the start of the running period when absent.',
    }),
    end_time: orNull(timestampText).meta({
      description: 'Events before this instant; until the end of the running period when absent.',
    }),
    lifetime_usage: orNull(z.boolean()).meta({
      description: 'Usage since the start of the subscription, until now when no end is stated.',
    }),
  })
  .meta({ id: 'GetUsageBySubscriptionRequest', example: { subscription_id: 'subs_01JZ8K3M5N7P9Q1R3S5T7V9W1X' } });

const UsageCharge = z
  .object({
    subscription_line_item_id: z.string().nullable().meta({
      description: 'The line item that bills the usage; null of what is lacking to the commitment of the subscription.',
    }),
    amount: decimalText.meta({ description: 'What the quantity costs, rounded as on an invoice.' }),
    currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
    display_amount: z.string().meta({ description: 'The amount as people write it, such as $20.' }),
    quantity: decimalText.meta({
      description: 'The usage in the range as it is billed: not below 0, and with 18 decimals at most.',
    }),
    filter_values: z
      .record(z.string(), z.array(z.string()))
      .meta({ description: 'The filters of the meter: properties, and of each the values that pass.' }),
    meter_id: z.string().nullable().meta({ description: 'Null of what is lacking.' }),
    meter_display_name: z.string().meta({ description: 'The name of the meter, or of what is lacking.' }),
    price: PriceAnswer.nullable().meta({ description: 'The price that the line item has; null of what is lacking.' }),
    is_overage: z.boolean().meta({
      description:
        'Whether it is what lies above the commitment of the subscription: an entry beside that of the line.',
    }),
    overage_factor: decimalText.nullable().meta({
      description: 'What lies above a commitment costs so many times as much; null without a commitment.',
    }),
  })
  .meta({ id: 'SubscriptionUsageByMetersResponse' });

export const SubscriptionUsageAnswer = z
  .object({
    amount: decimalText.meta({
      description:
        'What the usage of all line items costs, in the currency of the subscription, with what is lacking to the commitment of the subscription.',
    }),
    currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
    display_amount: z.string().meta({ description: 'The amount as people write it, such as $20.' }),
    start_time: timestampText.meta({ description: 'The start of the range that was answered.' }),
    end_time: timestampText.meta({ description: 'The end of the range that was answered, which is not in it.' }),
    charges: z.array(UsageCharge).meta({
      description:
        'One for each usage line item that lives in the range, and one for what is lacking to the commitment of the subscription, as on the invoice.',
    }),
    commitment_amount: decimalText
      .nullable()
      .meta({ description: 'What the subscription as a whole is committed to; null without a commitment.' }),
    overage_factor: decimalText
      .nullable()
      .meta({ description: 'What lies above costs so many times as much; null without a commitment.' }),
    commitment_utilized: decimalText
      .nullable()
      .meta({ description: 'What the usage has drawn from the commitment; null without one.' }),
    overage_amount: decimalText
      .nullable()
      .meta({ description: 'What lies above the commitment costs so much; null without one.' }),
    has_overage: z.boolean().meta({ description: 'Whether anything lies above a commitment, of a line or of all.' }),
  })
  .meta({ id: 'GetUsageBySubscriptionResponse' });

const flag = z.union([z.boolean(), z.stringbool({ truthy: ['true'], falsy: ['false'] })]);
const commaSeparated = <S extends z.ZodType>(item: S) =>
  z.preprocess(
    (input) => (typeof input === 'string' ? input.split(',').map((part) => part.trim()) : input),
    z.array(item),
  );

export const SubscriptionExpand = z.object({ expand });

export const SubscriptionFilter = listShape({
  subscription_ids: matchAny('subscriptions'),
  parent_subscription_ids: matchAny('parent subscriptions'),
  customer_id: z.string().optional().meta({ description: 'Id of the customer who uses.' }),
  customer_ids: matchAny('customers'),
  external_customer_id: z
    .string()
    .optional()
    .meta({ description: 'The customer by the id that its events name; archived ones of this id, too.' }),
  invoicing_customer_ids: matchAny('customers, to whom the invoices go'),
  plan_id: z.string().optional().meta({ description: 'Id of the plan.' }),
  subscription_status: commaSeparated(anyCase(SUBSCRIPTION_STATUSES))
    .optional()
    .meta({ description: 'Any of these states.' }),
  subscription_type: commaSeparated(anyCase(SUBSCRIPTION_TYPES))
    .optional()
    .meta({ description: 'Any of these types.' }),
  billing_cadence: commaSeparated(anyCase(['RECURRING']))
    .optional()
    .meta({ description: 'Any of these; every subscription is RECURRING.' }),
  billing_period: commaSeparated(anyCase(SUBSCRIPTION_PERIODS))
    .optional()
    .meta({ description: 'Any of these periods.' }),
  active_at: timestampText.optional().meta({ description: 'Subscriptions that are active at this instant.' }),
  effective_date_for_update: timestampText
    .optional()
    .meta({ description: 'Subscriptions whose period, scheduled cancellation or end comes by this instant.' }),
  trial_end_due_lte: timestampText
    .optional()
    .meta({ description: 'Subscriptions in a trial that ends at this instant or before.' }),
  with_line_items: flag.default(false).meta({ description: 'Answers with the line items of each.' }),
  with_coupon_associations: flag.default(false).meta({ description: 'Answers with the coupons of each.' }),
}).meta({
  id: 'SubscriptionFilter',
  example: { external_customer_id: 'acme', subscription_status: ['active'], limit: 10 },
});
export type SubscriptionFilter = z.output<typeof SubscriptionFilter>;

export const subscriptionGrammar: ListGrammar = {
  columns: {
    id: 'string',
    lookup_key: 'string',
    customer_id: 'string',
    plan_id: 'string',
    subscription_status: 'string',
    subscription_type: 'string',
    currency: 'string',
    billing_cycle: 'string',
    billing_period: 'string',
    billing_period_count: 'number',
    billing_anchor: 'date',
    start_date: 'date',
    end_date: 'date',
    current_period_start: 'date',
    current_period_end: 'date',
    cancel_at: 'date',
    cancelled_at: 'date',
    cancel_at_period_end: 'boolean',
    trial_start: 'date',
    trial_end: 'date',
    collection_method: 'string',
    payment_behavior: 'string',
    timezone: 'string',
    version: 'number',
    status: 'string',
    created_at: 'date',
    updated_at: 'date',
    created_by: 'string',
    updated_by: 'string',
  },
  expand: subscriptionExpand,
  metadata: true,
};
export const SubscriptionListAnswer = listAnswer(SubscriptionAnswer, 'ListSubscriptionsResponse');

export const SubscriptionLineItemFilter = listShape({
  subscription_line_item_ids: matchAny('line items'),
  subscription_ids: matchAny('subscriptions'),
  customer_ids: matchAny('customers'),
  price_ids: matchAny('prices'),
  meter_ids: matchAny('meters'),
  currencies: matchAny('currencies'),
  billing_periods: commaSeparated(anyCase(LINE_ITEM_PERIODS)).optional().meta({ description: 'Any of these periods.' }),
  entity_ids: matchAny('plans, add-ons or subscriptions, from which the line comes'),
  entity_type: anyCase(LINE_ITEM_ENTITY_TYPES).optional().meta({ description: 'Where the line comes from.' }),
  addon_association_ids: matchAny('associations of add-ons'),
  active_filter: flag
    .default(true)
    .meta({ description: 'Lines that have not ended at `current_period_start`; `false` takes those that have, too.' }),
  current_period_start: timestampText
    .optional()
    .meta({ description: 'The instant of `active_filter`; now when absent.' }),
}).meta({
  id: 'SubscriptionLineItemFilter',
  example: { subscription_ids: ['subs_01JZ8K3M5N7P9Q1R3S5T7V9W1X'], limit: 10 },
});
export type SubscriptionLineItemFilter = z.output<typeof SubscriptionLineItemFilter>;

export const lineItemGrammar: ListGrammar = {
  columns: {
    id: 'string',
    subscription_id: 'string',
    customer_id: 'string',
    entity_id: 'string',
    entity_type: 'string',
    price_id: 'string',
    price_type: 'string',
    meter_id: 'string',
    display_name: 'string',
    plan_display_name: 'string',
    quantity: 'number',
    currency: 'string',
    billing_period: 'string',
    billing_period_count: 'number',
    invoice_cadence: 'string',
    start_date: 'date',
    end_date: 'date',
    status: 'string',
    created_at: 'date',
    updated_at: 'date',
    created_by: 'string',
    updated_by: 'string',
  },
  expand: [
    'prices',
    'prices.meters',
    'prices.priceunit',
    'prices.plan',
    'prices.addons',
    'prices.groups',
    'subscription_line_items',
    'subscription_line_items.prices',
  ],
  metadata: true,
};
export const SubscriptionLineItemListAnswer = listAnswer(
  SubscriptionLineItemAnswer,
  'ListSubscriptionLineItemsResponse',
);
