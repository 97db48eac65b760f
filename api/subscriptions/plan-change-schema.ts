/** Plan changes, as they are asked for and answered. */
import { z } from 'zod';
import { addonPolicyShape, ENTITY_BEHAVIOURS } from '../../core/addon/policy.ts';
import { anyCase, decimalText, int32, keyText, metadata, orDefault, orNull, timestampText } from '../../core/record.ts';
import { CHANGE_TYPES } from '../../core/subscription/plan-change.ts';
import {
  BILLING_CYCLES,
  PRORATION_BEHAVIORS,
  SUBSCRIPTION_PERIODS,
  SUBSCRIPTION_STATUSES,
} from '../../core/subscription/record.ts';
import { InvoiceWithoutParts } from '../invoices/answer.ts';
import { SubscriptionAnswer } from './answer.ts';
import { ChangedResourcesAnswer } from './modify-schema.ts';

const shared = {
  target_plan_id: z.string().min(1).meta({ description: 'The published plan that it gets.' }),
  proration_behavior: anyCase(PRORATION_BEHAVIORS).meta({
    description:
      'create_prorations credits unused time that was charged in advance and charges the new plan until the end of the period; with none the new plan is charged from the next period on.',
  }),
  change_at: orDefault(anyCase(['immediate', 'end_of_period']), 'immediate').meta({
    description: 'immediate, also when absent, or when the running period ends.',
  }),
  metadata,
};

export const ChangePlan = z
  .object({
    ...shared,
    billing_cadence: anyCase(['RECURRING']).meta({ description: 'Every subscription is RECURRING.' }),
    billing_period: anyCase(SUBSCRIPTION_PERIODS).meta({
      description: 'As it is, or another one: then a new period begins with the change.',
    }),
    billing_period_count: orDefault(
      int32.refine((count) => count >= 1, { error: 'must be at least 1' }),
      1,
    ).meta({ description: 'How many of these make a period; 1 when absent.' }),
    billing_cycle: anyCase(BILLING_CYCLES).meta({
      description: 'As it is, or another one: then a new period begins with the change.',
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
      z.object({ addons: orNull(addonPolicyShape).meta({ description: 'Of its add-ons.' }) }),
    ).meta({
      description: 'What becomes of what it has beside the plan; it stays when absent.',
    }),
    idempotency_key: orNull(keyText).meta({
      description: 'Nothing goes by it: a change that comes again is refused, because the plan is that one already.',
    }),
  })
  .meta({
    id: 'SubscriptionChangeV2Request',
    example: { target_plan_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W3X', proration_behavior: 'create_prorations' },
  });

export const PlanSummary = z
  .object({
    id: z.string(),
    name: z.string().meta({ description: 'What people call it.' }),
    lookup_key: z.string().nullable().meta({ description: 'A name of your own; null without.' }),
    description: z.string().nullable().meta({ description: 'For people; null without.' }),
  })
  .meta({ id: 'PlanSummary' });

const ProrationDetails = z
  .object({
    credit_amount: decimalText.meta({ description: 'What is given back.' }),
    credit_description: z.string().meta({ description: 'For people.' }),
    charge_amount: decimalText.meta({ description: 'What is charged.' }),
    charge_description: z.string().meta({ description: 'For people.' }),
    net_amount: decimalText.meta({ description: 'The charge less the credit; below 0 it goes into the wallet.' }),
    proration_date: timestampText.meta({ description: 'The instant of the change.' }),
    current_period_start: timestampText.meta({ description: 'The start of the period before the change.' }),
    current_period_end: timestampText.meta({ description: 'The end of that period, which is not in it.' }),
    days_used: z.int().meta({ description: 'Days of the calendar before the change.' }),
    days_remaining: z.int().meta({ description: 'Days of the calendar behind it.' }),
    currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
  })
  .meta({ id: 'ProrationDetails' });

const InvoicePreview = z
  .object({
    subtotal: decimalText.meta({ description: 'The sum of the lines.' }),
    tax_amount: decimalText.meta({ description: 'What taxes add.' }),
    total: decimalText.meta({ description: 'What is to be paid; not below 0.' }),
    currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
    line_items: z
      .array(
        z
          .object({
            description: z.string().meta({ description: 'What people read.' }),
            amount: decimalText.meta({ description: 'What it costs; below 0 of a credit.' }),
            quantity: decimalText.meta({ description: 'How many units.' }),
            unit_price: decimalText.meta({ description: 'The amount by the quantity; 0 without one.' }),
            period_start: timestampText.nullable().meta({ description: 'The start of the time that it is for.' }),
            period_end: timestampText.nullable().meta({ description: 'The end of that time, which is not in it.' }),
            is_proration: z.boolean().meta({ description: 'Whether it is for a part of a period.' }),
          })
          .meta({ id: 'InvoiceLineItemPreview' }),
      )
      .meta({ description: 'Credits first, then charges.' }),
    due_date: timestampText.nullable().meta({ description: 'Until when it would be to be paid.' }),
  })
  .meta({ id: 'InvoicePreview' });

const changeType = z.enum(CHANGE_TYPES).meta({
  description: 'By what the fixed charges of a year come to: upgrade costs more, downgrade less, lateral the same.',
});
const warnings = z.array(z.string()).meta({
  description:
    'What one might not expect, in sentences; among them meters that another subscription of the customer charges, too.',
});
const requestedMetadata = metadata.meta({ description: 'As it was stated.' });

export const ChangePlanPreviewAnswer = z
  .object({
    subscription_id: z.string().meta({ description: 'The subscription, which keeps its id.' }),
    current_plan: PlanSummary.meta({ description: 'The plan that it has.' }),
    target_plan: PlanSummary.meta({ description: 'The plan that it would get.' }),
    change_type: changeType,
    proration_details: ProrationDetails.nullable().meta({
      description: 'Null where nothing is credited or charged at once.',
    }),
    next_invoice_preview: InvoicePreview.nullable().meta({
      description: 'The invoice that the change would make; null where it would make none.',
    }),
    effective_date: timestampText.meta({ description: 'When it would happen.' }),
    new_billing_cycle: z
      .object({
        period_start: timestampText.meta({ description: 'The start of the running period after the change.' }),
        period_end: timestampText.meta({ description: 'Its end, which is not in it.' }),
        billing_anchor: timestampText.meta({
          description: 'Where periods end, and whole periods before and after it.',
        }),
        billing_cadence: z.literal('RECURRING').meta({ description: 'Every subscription is RECURRING.' }),
        billing_period: z.enum(SUBSCRIPTION_PERIODS).meta({ description: 'How long a period is, times the count.' }),
        billing_period_count: z.int().meta({ description: 'How many of these make a period.' }),
      })
      .meta({ id: 'BillingCycleInfo', description: 'Its periods after the change.' }),
    warnings,
    metadata: requestedMetadata,
  })
  .meta({ id: 'SubscriptionChangePreviewResponse' });

const SubscriptionSummary = z
  .object({
    id: z.string(),
    status: z.enum(SUBSCRIPTION_STATUSES).meta({ description: 'Its state.' }),
    plan_id: z.string().meta({ description: 'Its plan.' }),
    current_period_start: timestampText.meta({ description: 'The start of its running period.' }),
    current_period_end: timestampText.meta({ description: 'The end of its running period.' }),
    billing_anchor: timestampText.meta({ description: 'Where periods end, and whole periods before and after it.' }),
    created_at: timestampText,
    archived_at: z.null().meta({ description: 'It goes on under its id: null.' }),
  })
  .meta({ id: 'SubscriptionSummary' });

const scheduled = {
  is_scheduled: z.boolean().meta({ description: 'Whether it happens when the period ends.' }),
  schedule_id: z.string().nullable().meta({ description: 'By which it can be undone; null when it has happened.' }),
  scheduled_at: timestampText.nullable().meta({ description: 'When it happens; null when it has happened.' }),
};

export const ChangePlanAnswer = z
  .object({
    ...scheduled,
    old_subscription: SubscriptionSummary.meta({ description: 'As it was before the change.' }),
    new_subscription: SubscriptionSummary.meta({ description: 'As it is after it: the same subscription.' }),
    change_type: changeType,
    invoice: InvoiceWithoutParts.nullable().meta({ description: 'What it credits and charges; null where nothing.' }),
    proration_applied: ProrationDetails.nullable().meta({ description: 'Null where nothing is credited or charged.' }),
    credit_grants: z.null().meta({
      description: 'Not told here: null. What the grants of the plan give is at `/subscriptions/{id}/grants/upcoming`.',
    }),
    effective_date: timestampText.meta({ description: 'When it happened, or will.' }),
    warnings,
    metadata: requestedMetadata,
  })
  .meta({ id: 'SubscriptionChangeExecuteResponse' });

export const ChangePlanV2Answer = z
  .object({
    subscription: SubscriptionAnswer.nullable().meta({
      description: 'As it is after the change; as it is now in a preview.',
    }),
    changed_resources: ChangedResourcesAnswer.meta({ description: 'What the change does.' }),
    change_type: changeType,
    effective_at: timestampText.meta({ description: 'When it happened, or will.' }),
    from_plan: PlanSummary.meta({ description: 'The plan before.' }),
    to_plan: PlanSummary.meta({ description: 'The plan after.' }),
    entity_changes: z
      .array(
        z
          .object({
            entity_type: z.enum(['plan', 'addon', 'subscription']).meta({ description: 'What it is.' }),
            reference_id: z.string().meta({
              description: 'Its place in the subscription: the association of an add-on, else the line item.',
            }),
            entity_id: z.string().meta({ description: 'Its id in the catalogue.' }),
            behaviour: z.enum(ENTITY_BEHAVIOURS).meta({ description: 'carry: it stays; drop: it is detached.' }),
          })
          .meta({ id: 'EntityChangeResult' }),
      )
      .meta({ description: 'What it has beside the plan, and what becomes of it.' }),
    ...scheduled,
    warnings,
    metadata: requestedMetadata,
  })
  .meta({ id: 'SubscriptionChangeV2Response' });
