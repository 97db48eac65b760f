/** Subscriptions and their line items as they are answered. */
import { z } from 'zod';
import { SubscriptionPhase } from '../../core/subscription/phases.ts';
import { Subscription, SubscriptionLineItem } from '../../core/subscription/record.ts';
import { CouponAssociationAnswer } from '../coupons/schema.ts';
import { CreditGrantAnswer } from '../creditgrants/schema.ts';
import { CustomerAnswer } from '../customers/schema.ts';
import { EntitledFeatureAnswer } from '../entitlements/entitled.ts';
import { InvoiceWithoutParts } from '../invoices/answer.ts';
import { MeterAnswer } from '../meters/schema.ts';
import { PlanAnswer } from '../plans/schema.ts';
import { PriceAnswer } from '../prices/schema.ts';
import { ScheduleAnswer } from './show-schedule.ts';
import { warnings } from './warnings.ts';

const SubscriptionPhaseAnswer = SubscriptionPhase.meta({ id: 'SubscriptionPhaseResponse' });

/** `trial_period` is the published client's name of `trial_period_days`. */
export const SubscriptionLineItemAnswer = SubscriptionLineItem.extend({
  trial_period: z.int().meta({ description: 'Another name of `trial_period_days`.' }),
  meter: MeterAnswer.nullable().meta({ description: 'Where `expand` names it; null of a FIXED price.' }),
  price: PriceAnswer.nullable().meta({ description: 'Where `expand` names it.' }),
}).meta({ id: 'SubscriptionLineItemResponse' });

export const AddedLineItemAnswer = SubscriptionLineItemAnswer.extend({ warnings }).meta({
  id: 'CreateSubscriptionLineItemResponse',
});

/** Pausing was removed from the interface; the published client needs the keys. */
const clientCompatibilityFields = {
  customer_timezone: z.string().meta({ description: 'Another name of `timezone`.' }),
  pause_status: z.literal('none').meta({ description: 'Subscriptions cannot be paused.' }),
  active_pause_id: z.null().meta({ description: 'Subscriptions cannot be paused.' }),
  pauses: z.null().meta({ description: 'Subscriptions cannot be paused.' }),
  coupon_associations: z.array(CouponAssociationAnswer).nullable().meta({
    description: 'The coupons that it has redeemed and that have not ended, where `expand` names them; else null.',
  }),
  phases: z
    .array(SubscriptionPhaseAnswer)
    .meta({ description: 'Stretches with terms of their own, in their order; empty without.' }),
  credit_grants: z.array(CreditGrantAnswer).meta({
    description: 'What gives it credits: published grants of its plan, of the add-ons that it has, and its own.',
  }),
};

const parts = {
  schedule: ScheduleAnswer.nullable().meta({
    description: 'What is to happen to it, where `expand` names it; null where nothing is.',
  }),
  plan: PlanAnswer.nullable().meta({
    description: 'Where it is answered with the subscription, or `expand` names it.',
  }),
  customer: CustomerAnswer.nullable().meta({
    description: 'Where it is answered with the subscription, or `expand` names it.',
  }),
  line_items: z
    .array(SubscriptionLineItemAnswer)
    .nullable()
    .meta({ description: 'Where they are answered with the subscription, or asked for.' }),
};

export const SubscriptionAnswer = Subscription.extend({
  ...clientCompatibilityFields,
  ...parts,
  latest_invoice: InvoiceWithoutParts.nullable().meta({
    description: 'When it is made: its opening invoice, if there is one; else null.',
  }),
  entitlements: z
    .array(EntitledFeatureAnswer)
    .nullable()
    .meta({ description: 'What it grants now, where `expand` names it; else null.' }),
  checkout_session: z.null().meta({ description: 'Checkouts are not there yet.' }),
  warnings,
}).meta({ id: 'SubscriptionResponse' });

export const SubscriptionAnswerV2 = Subscription.extend({
  ...clientCompatibilityFields,
  ...parts,
  plan_prices_out_of_sync: z
    .boolean()
    .meta({ description: 'Whether the plan has got prices since that the line items do not know.' }),
}).meta({ id: 'SubscriptionResponseV2' });
