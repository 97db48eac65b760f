/** Requests and answers of plan changes. */
import { z } from 'zod';
import { addonPolicyShape, ENTITY_BEHAVIOURS } from '../../../core/catalog/addon/policy.ts';
import {
  anyCase,
  decimalText,
  int32,
  keyText,
  metadata,
  orDefault,
  orNull,
  timestampText,
} from '../../../core/foundation/record.ts';
import { CHANGE_TYPES } from '../../../core/subscriptions/plan-change.ts';
import {
  BILLING_CYCLES,
  PRORATION_BEHAVIORS,
  SUBSCRIPTION_PERIODS,
  SUBSCRIPTION_STATUSES,
} from '../../../core/subscriptions/record.ts';
import { SubscriptionAnswer } from '../../subscriptions/answer.ts';
import { InvoiceWithoutParts } from '../../subscriptions/invoice-answer.ts';
import { ChangedResourcesAnswer } from './modify-schema.ts';

const shared = {
  target_plan_id: z.string().min(1).meta({ description: 'Id of the new plan, which must be published.' }),
  proration_behavior: anyCase(PRORATION_BEHAVIORS).meta({
    description:
      'create_prorations credits unused advance charges, and charges the new plan until the end of the period. ' +
      'none charges the new plan from the next period on.',
  }),
  change_at: orDefault(anyCase(['immediate', 'end_of_period']), 'immediate').meta({
    description: 'Time of the change: immediate, or at the end_of_period of the current period. Default immediate.',
  }),
  metadata,
};

export const ChangePlan = z
  .object({
    ...shared,
    billing_cadence: anyCase(['RECURRING']).meta({ description: 'Always RECURRING.' }),
    billing_period: anyCase(SUBSCRIPTION_PERIODS).meta({
      description:
        'Billing period after the change. A value other than the current one starts a new period with the change.',
    }),
    billing_period_count: orDefault(
      int32.refine((count) => count >= 1, { error: 'must be at least 1' }),
      1,
    ).meta({ description: 'Number of units in a billing period, at least 1. Default 1.' }),
    billing_cycle: anyCase(BILLING_CYCLES).meta({
      description:
        'Billing cycle after the change. A value other than the current one starts a new period with the change.',
    }),
  })
  .meta({
    id: 'SubscriptionChangeRequest',
    example: {
      target_plan_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W3X',
      proration_behavior: 'create_prorations',
      billing_cadence: 'RECURRING',
      billing_period: 'MONTHLY',
      billing_cycle: 'anniversary',
    },
  });

export const ChangePlanV2 = z
  .object({
    ...shared,
    entity_policies: orNull(
      z.object({ addons: orNull(addonPolicyShape).meta({ description: 'Policy for the add-ons.' }) }),
    ).meta({
      description: 'Treatment of the other parts of the subscription. Default: they remain.',
    }),
    idempotency_key: orNull(keyText).meta({
      description:
        'Accepted without effect: a repeated change is refused, because the subscription has the plan already.',
    }),
  })
  .meta({
    id: 'SubscriptionChangeV2Request',
    example: { target_plan_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W3X', proration_behavior: 'create_prorations' },
  });

const PlanSummary = z
  .object({
    id: z.string(),
    name: z.string().meta({ description: 'Name of the plan, for people.' }),
    lookup_key: z.string().nullable().meta({ description: 'Your own name for the plan; null without one.' }),
    description: z.string().nullable().meta({ description: 'Text for people; null without one.' }),
  })
  .meta({ id: 'PlanSummary' });

const ProrationDetails = z
  .object({
    credit_amount: decimalText.meta({ description: 'Credited amount.' }),
    credit_description: z.string().meta({ description: 'Description of the credit, for people.' }),
    charge_amount: decimalText.meta({ description: 'Charged amount.' }),
    charge_description: z.string().meta({ description: 'Description of the charge, for people.' }),
    net_amount: decimalText.meta({ description: 'Charge minus credit; a negative amount goes to the wallet.' }),
    proration_date: timestampText.meta({ description: 'Instant of the change.' }),
    current_period_start: timestampText.meta({ description: 'Start of the period before the change.' }),
    current_period_end: timestampText.meta({ description: 'Exclusive end of the period before the change.' }),
    days_used: z.int().meta({ description: 'Calendar days of the period before the change.' }),
    days_remaining: z.int().meta({ description: 'Calendar days of the period after the change.' }),
    currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
  })
  .meta({ id: 'ProrationDetails' });

const InvoicePreview = z
  .object({
    subtotal: decimalText.meta({ description: 'Sum of the lines.' }),
    tax_amount: decimalText.meta({ description: 'Tax added.' }),
    total: decimalText.meta({ description: 'Amount to pay; never below 0.' }),
    currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
    line_items: z
      .array(
        z
          .object({
            description: z.string().meta({ description: 'Description of the line, for people.' }),
            amount: decimalText.meta({ description: 'Amount of the line; negative for a credit.' }),
            quantity: decimalText.meta({ description: 'Number of units.' }),
            unit_price: decimalText.meta({ description: 'Amount divided by quantity; 0 without a quantity.' }),
            period_start: timestampText.nullable().meta({ description: 'Start of the service period.' }),
            period_end: timestampText.nullable().meta({ description: 'End of the service period, exclusive.' }),
            is_proration: z.boolean().meta({ description: 'True if the line covers a part of a period.' }),
          })
          .meta({ id: 'InvoiceLineItemPreview' }),
      )
      .meta({ description: 'Lines of the invoice: credits first, then charges.' }),
    due_date: timestampText.nullable().meta({ description: 'Date by which payment would be due.' }),
  })
  .meta({ id: 'InvoicePreview' });

const changeType = z.enum(CHANGE_TYPES).meta({
  description: 'Comparison of the fixed charges per year: upgrade costs more, downgrade less, lateral the same.',
});
const warnings = z.array(z.string()).meta({
  description:
    'Sentences about unexpected effects, such as meters that another subscription of the customer charges, too.',
});
const requestedMetadata = metadata.meta({ description: 'Metadata of the request.' });

export const ChangePlanPreviewAnswer = z
  .object({
    subscription_id: z.string().meta({ description: 'Id of the subscription, which does not change.' }),
    current_plan: PlanSummary.meta({ description: 'Plan before the change.' }),
    target_plan: PlanSummary.meta({ description: 'Plan after the change.' }),
    change_type: changeType,
    proration_details: ProrationDetails.nullable().meta({
      description: 'Credits and charges that are due at once; null without any.',
    }),
    next_invoice_preview: InvoicePreview.nullable().meta({
      description: 'Invoice that the change would create; null without one.',
    }),
    effective_date: timestampText.meta({ description: 'Instant at which the change would take effect.' }),
    new_billing_cycle: z
      .object({
        period_start: timestampText.meta({ description: 'Start of the current period after the change.' }),
        period_end: timestampText.meta({ description: 'Exclusive end of the current period after the change.' }),
        billing_anchor: timestampText.meta({
          description:
            'Anchor of the periods: one period ends at this instant, and the others end whole periods before or after it.',
        }),
        billing_cadence: z.literal('RECURRING').meta({ description: 'Always RECURRING.' }),
        billing_period: z
          .enum(SUBSCRIPTION_PERIODS)
          .meta({ description: 'Unit of the billing period. A period is `billing_period_count` of these units long.' }),
        billing_period_count: z.int().meta({ description: 'Number of units in a billing period.' }),
      })
      .meta({ id: 'BillingCycleInfo', description: 'Billing periods after the change.' }),
    warnings,
    metadata: requestedMetadata,
  })
  .meta({ id: 'SubscriptionChangePreviewResponse' });

const SubscriptionSummary = z
  .object({
    id: z.string(),
    status: z.enum(SUBSCRIPTION_STATUSES).meta({ description: 'Status of the subscription.' }),
    plan_id: z.string().meta({ description: 'Id of the plan.' }),
    current_period_start: timestampText.meta({ description: 'Start of the current period.' }),
    current_period_end: timestampText.meta({ description: 'End of the current period.' }),
    billing_anchor: timestampText.meta({
      description:
        'Anchor of the periods: one period ends at this instant, and the others end whole periods before or after it.',
    }),
    created_at: timestampText,
    archived_at: z.null().meta({ description: 'Always null; the subscription continues under its id.' }),
  })
  .meta({ id: 'SubscriptionSummary' });

const scheduled = {
  is_scheduled: z.boolean().meta({ description: 'True if the change happens at the end of the period.' }),
  schedule_id: z
    .string()
    .nullable()
    .meta({ description: 'Id of the schedule, by which the change can be cancelled; null if it has happened.' }),
  scheduled_at: timestampText
    .nullable()
    .meta({ description: 'Instant of the scheduled change; null if it has happened.' }),
};

export const ChangePlanAnswer = z
  .object({
    ...scheduled,
    old_subscription: SubscriptionSummary.meta({ description: 'Subscription before the change.' }),
    new_subscription: SubscriptionSummary.meta({ description: 'Subscription after the change, under the same id.' }),
    change_type: changeType,
    invoice: InvoiceWithoutParts.nullable().meta({
      description: 'Invoice with credits and charges; null without any.',
    }),
    proration_applied: ProrationDetails.nullable().meta({
      description: 'Prorated credits and charges; null if there are none.',
    }),
    credit_grants: z.null().meta({
      description: "Always null. Credits of the plan's grants are at `/subscriptions/{id}/grants/upcoming`.",
    }),
    effective_date: timestampText.meta({ description: 'Instant at which the change took or takes effect.' }),
    warnings,
    metadata: requestedMetadata,
  })
  .meta({ id: 'SubscriptionChangeExecuteResponse' });

export const ChangePlanV2Answer = z
  .object({
    subscription: SubscriptionAnswer.nullable().meta({
      description: 'Subscription after the change; in a preview, its current state.',
    }),
    changed_resources: ChangedResourcesAnswer.meta({ description: 'Effects of the change.' }),
    change_type: changeType,
    effective_at: timestampText.meta({ description: 'Instant at which the change took or takes effect.' }),
    from_plan: PlanSummary.meta({ description: 'Plan before the change.' }),
    to_plan: PlanSummary.meta({ description: 'Plan after the change.' }),
    entity_changes: z
      .array(
        z
          .object({
            entity_type: z.enum(['plan', 'addon', 'subscription']).meta({ description: 'Kind of the part.' }),
            reference_id: z.string().meta({
              description: 'Id of the add-on association, or of the line item, in the subscription.',
            }),
            entity_id: z.string().meta({ description: 'Id in the catalogue.' }),
            behaviour: z
              .enum(ENTITY_BEHAVIOURS)
              .meta({ description: 'carry: the part remains. drop: it is detached.' }),
          })
          .meta({ id: 'EntityChangeResult' }),
      )
      .meta({ description: 'Parts of the subscription other than the plan, and their treatment.' }),
    ...scheduled,
    warnings,
    metadata: requestedMetadata,
  })
  .meta({ id: 'SubscriptionChangeV2Response' });
