import { z } from 'zod';
import { anyCase, decimalText, orDefault, orNull, timestampText } from '../../core/foundation/record.ts';
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
} from '../../core/subscriptions/record.ts';
import { PriceAnswer } from '../catalog/prices/schema.ts';
import { expand, type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';
import { SubscriptionAnswer, SubscriptionLineItemAnswer } from './answer.ts';
import { subscriptionExpand } from './expand.ts';
import { InvoiceWithoutParts } from './invoice-answer.ts';

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
  .object({ start_date: timestampText.meta({ description: 'Start of the charges.' }) })
  .meta({ id: 'ActivateDraftSubscriptionRequest', example: { start_date: '2026-02-01T00:00:00Z' } });

/** `cancel_immediately_inovice_policy` is misspelled in the published API; the correct spelling is accepted, too. */
export const CancelSubscription = z
  .object({
    cancellation_type: anyCase(CANCELLATION_TYPES).meta({
      description: 'immediate, end_of_period (end of the current period) or scheduled_date (at `cancel_at`).',
    }),
    cancel_at: orNull(timestampText).meta({
      description:
        'Time of the cancellation. For scheduled_date it must be in the future. For immediate: a past instant of ' +
        'the current period; default now.',
    }),
    cancel_immediately_inovice_policy: orNull(anyCase(CANCEL_INVOICE_POLICIES)).meta({
      description:
        'Policy of an immediate cancellation: generate_invoice invoices the arrears up to the cancellation, skip does not invoice them. ' +
        'Default generate_invoice.',
    }),
    cancel_immediately_invoice_policy: orNull(anyCase(CANCEL_INVOICE_POLICIES)).meta({
      description: 'Correctly spelled alias of `cancel_immediately_inovice_policy`, which takes precedence.',
    }),
    proration_behavior: orDefault(anyCase(PRORATION_BEHAVIORS), 'none').meta({
      description:
        'none: advance charges are not credited. create_prorations: if the subscription ends within a period, unused advance ' +
        'charges are credited to the prepaid wallet. Default none.',
    }),
    reason: orNull(z.string()).meta({ description: 'Reason for the cancellation, for people.' }),
  })
  .meta({
    id: 'CancelSubscriptionRequest',
    example: { cancellation_type: 'end_of_period', reason: 'moved to another plan' },
  });

const ProrationDetailAnswer = z
  .object({
    line_item_id: z.string().meta({ description: 'Id of the credited line item.' }),
    price_id: z.string().meta({ description: 'Id of the price of the line item.' }),
    plan_name: z.string().nullable().meta({ description: 'Name of the plan; null without one.' }),
    original_amount: decimalText.meta({ description: 'Cost of a whole period.' }),
    credit_amount: decimalText.meta({ description: 'Credited amount.' }),
    charge_amount: decimalText.meta({ description: 'Always 0; nothing is charged instead.' }),
    proration_days: z.int().meta({ description: 'Number of unused calendar days.' }),
    description: z.string().meta({ description: 'Name of the invoice line.' }),
  })
  .meta({ id: 'ProrationDetail' });

export const CancelSubscriptionAnswer = z
  .object({
    subscription_id: z.string().meta({ description: 'Id of the cancelled subscription.' }),
    cancellation_type: z.enum(CANCELLATION_TYPES).meta({ description: 'Cancellation type of the request.' }),
    effective_date: timestampText.meta({ description: 'Instant at which the subscription ends or ended.' }),
    status: z
      .enum(SUBSCRIPTION_STATUSES)
      .meta({ description: 'Status of the subscription: active until its end, then cancelled.' }),
    reason: z.string().nullable().meta({ description: 'Reason of the request; null without one.' }),
    proration_invoice: InvoiceWithoutParts.nullable().meta({
      description: 'Invoice with the credited lines; null without credits.',
    }),
    proration_details: z.array(ProrationDetailAnswer).meta({ description: 'Credited amounts per line item.' }),
    total_credit_amount: decimalText.meta({
      description: 'Amount that was paid for unused time and is credited to the wallet; 0 if nothing was paid.',
    }),
    message: z.string().meta({ description: 'Result of the operation, for people.' }),
    processed_at: timestampText.meta({ description: 'Instant of the request.' }),
  })
  .meta({ id: 'CancelSubscriptionResponse' });

export const CancelSubscriptionPreviewAnswer = CancelSubscriptionAnswer.extend({
  final_invoice: InvoiceWithoutParts.nullable().meta({
    description: 'Invoice of the arrears; null if nothing is invoiced, or the cancellation is scheduled.',
  }),
}).meta({ id: 'PreviewCancellationResponse' });

export const SubscriptionUsageRequest = z
  .object({
    subscription_id: z.string().min(1).meta({ description: 'Id of the subscription.' }),
    start_time: orNull(timestampText).meta({
      description: 'Start of the range, inclusive. Default: start of the current period.',
    }),
    end_time: orNull(timestampText).meta({
      description: 'End of the range, exclusive. Default: end of the current period.',
    }),
    lifetime_usage: orNull(z.boolean()).meta({
      description: 'True measures from the start of the subscription; the default end is then now.',
    }),
  })
  .meta({ id: 'GetUsageBySubscriptionRequest', example: { subscription_id: 'subs_01JZ8K3M5N7P9Q1R3S5T7V9W1X' } });

const UsageCharge = z
  .object({
    subscription_line_item_id: z.string().nullable().meta({
      description: "Line item that bills the usage; null for the true-up of the subscription's commitment.",
    }),
    amount: decimalText.meta({ description: 'Cost of the quantity, rounded as on an invoice.' }),
    currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
    display_amount: z.string().meta({ description: 'Formatted amount, such as $20.' }),
    quantity: decimalText.meta({
      description: 'Billed usage of the range: never below 0, with 18 decimals at most.',
    }),
    filter_values: z
      .record(z.string(), z.array(z.string()))
      .meta({ description: 'Filters of the meter: accepted values, keyed by property.' }),
    meter_id: z.string().nullable().meta({ description: 'Id of the meter; null for the true-up.' }),
    meter_display_name: z.string().meta({ description: 'Name of the meter or of the true-up.' }),
    price: PriceAnswer.nullable().meta({ description: 'Price of the line item; null for the true-up.' }),
    is_overage: z.boolean().meta({
      description:
        "True for the part above the subscription's commitment, which is a separate entry from the rest of the line.",
    }),
    overage_factor: decimalText.nullable().meta({
      description: 'Factor on the price above a commitment; null without a commitment.',
    }),
  })
  .meta({ id: 'SubscriptionUsageByMetersResponse' });

export const SubscriptionUsageAnswer = z
  .object({
    amount: decimalText.meta({
      description:
        "Cost of the usage of all line items in the subscription's currency, including the true-up of the " +
        "subscription's commitment.",
    }),
    currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
    display_amount: z.string().meta({ description: 'Formatted amount, such as $20.' }),
    start_time: timestampText.meta({ description: 'Start of the range.' }),
    end_time: timestampText.meta({ description: 'End of the range, exclusive.' }),
    charges: z.array(UsageCharge).meta({
      description:
        "One entry per usage line item that is active in the range, and one for the true-up of the subscription's " +
        'commitment, as on the invoice.',
    }),
    commitment_amount: decimalText
      .nullable()
      .meta({ description: 'Commitment of the whole subscription; null without one.' }),
    overage_factor: decimalText
      .nullable()
      .meta({ description: 'Factor on the price above the commitment; null without a commitment.' }),
    commitment_utilized: decimalText
      .nullable()
      .meta({ description: 'Part of the commitment that the usage has consumed; null without a commitment.' }),
    overage_amount: decimalText
      .nullable()
      .meta({ description: 'Cost of the usage above the commitment; null without a commitment.' }),
    has_overage: z
      .boolean()
      .meta({ description: 'True if usage exceeds a commitment of a line or of the subscription.' }),
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
  customer_id: z.string().optional().meta({ description: 'Id of the customer who uses the subscription.' }),
  customer_ids: matchAny('customers'),
  external_customer_id: z
    .string()
    .optional()
    .meta({ description: 'External id of the customer. Archived customers with this id are included.' }),
  invoicing_customer_ids: matchAny('customers who receive the invoices'),
  plan_id: z.string().optional().meta({ description: 'Id of the plan.' }),
  subscription_status: commaSeparated(anyCase(SUBSCRIPTION_STATUSES))
    .optional()
    .meta({ description: 'Matches any of these statuses.' }),
  subscription_type: commaSeparated(anyCase(SUBSCRIPTION_TYPES))
    .optional()
    .meta({ description: 'Matches any of these types.' }),
  billing_cadence: commaSeparated(anyCase(['RECURRING']))
    .optional()
    .meta({ description: 'Matches any of these cadences; every subscription is RECURRING.' }),
  billing_period: commaSeparated(anyCase(SUBSCRIPTION_PERIODS))
    .optional()
    .meta({ description: 'Matches any of these billing periods.' }),
  active_at: timestampText.optional().meta({ description: 'Matches subscriptions that are active at this instant.' }),
  effective_date_for_update: timestampText.optional().meta({
    description: 'Matches subscriptions whose period, scheduled cancellation or end is due at this instant or earlier.',
  }),
  trial_end_due_lte: timestampText
    .optional()
    .meta({ description: 'Matches subscriptions in a trial that ends at this instant or earlier.' }),
  with_line_items: flag.default(false).meta({ description: 'True includes the line items. Default false.' }),
  with_coupon_associations: flag.default(false).meta({ description: 'True includes the coupons. Default false.' }),
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
  billing_periods: commaSeparated(anyCase(LINE_ITEM_PERIODS))
    .optional()
    .meta({ description: 'Matches any of these billing periods.' }),
  entity_ids: matchAny('plans, add-ons or subscriptions that are the source of the line'),
  entity_type: anyCase(LINE_ITEM_ENTITY_TYPES)
    .optional()
    .meta({ description: 'Kind of record that is the source of the line.' }),
  addon_association_ids: matchAny('add-on associations'),
  active_filter: flag.default(true).meta({
    description:
      'True matches lines that have not ended at `current_period_start`; false includes ended lines. Default true.',
  }),
  current_period_start: timestampText
    .optional()
    .meta({ description: 'Reference instant of `active_filter`. Default now.' }),
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
