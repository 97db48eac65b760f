/** Answer shapes of subscriptions and their line items. */

import { z } from 'zod';
import { SubscriptionPhase } from '../../core/subscriptions/phases.ts';
import { Subscription, SubscriptionLineItem } from '../../core/subscriptions/record.ts';
import { CouponAssociationAnswer } from '../catalog/coupons/schema.ts';
import { CreditGrantAnswer } from '../catalog/credit-grants/schema.ts';
import { CustomerAnswer } from '../catalog/customers/schema.ts';
import { PlanAnswer } from '../catalog/plans/schema.ts';
import { PriceAnswer } from '../catalog/prices/schema.ts';
import { CheckoutSessionAnswer } from '../foundation/checkout-session.ts';
import { MeterAnswer } from '../metering/meters/schema.ts';
import { EntitledFeatureAnswer } from '../rating/entitlements/entitled.ts';
import { InvoiceWithoutParts } from './invoice-answer.ts';
import { ScheduleAnswer } from './show-schedule.ts';
import { warnings } from './warnings.ts';

const SubscriptionPhaseAnswer = SubscriptionPhase.meta({ id: 'SubscriptionPhaseResponse' });

/** `trial_period` is the published client's name of `trial_period_days`. */
export const SubscriptionLineItemAnswer = SubscriptionLineItem.extend({
  trial_period: z.int().meta({ description: 'Alias of `trial_period_days`.' }),
  meter: MeterAnswer.nullable().meta({ description: 'Present if `expand` names meters; null for a FIXED price.' }),
  price: PriceAnswer.nullable().meta({ description: 'Present if `expand` names prices; else null.' }),
}).meta({ id: 'SubscriptionLineItemResponse' });

export const AddedLineItemAnswer = SubscriptionLineItemAnswer.extend({ warnings }).meta({
  id: 'CreateSubscriptionLineItemResponse',
});

/** Pausing was removed from the interface; the published client needs the keys. */
const clientCompatibilityFields = {
  customer_timezone: z.string().meta({ description: 'Alias of `timezone`.' }),
  pause_status: z.literal('none').meta({ description: 'Always none; subscriptions cannot be paused.' }),
  active_pause_id: z.null().meta({ description: 'Always null; subscriptions cannot be paused.' }),
  pauses: z.null().meta({ description: 'Always null; subscriptions cannot be paused.' }),
  coupon_associations: z.array(CouponAssociationAnswer).nullable().meta({
    description: 'Redeemed coupons that have not ended. Present if `expand` names coupon_associations; else null.',
  }),
  phases: z
    .array(SubscriptionPhaseAnswer)
    .meta({ description: 'Intervals with separate terms, in order; empty without phases.' }),
  credit_grants: z.array(CreditGrantAnswer).meta({
    description: 'Published credit grants of the subscription: those of its plan, of its add-ons, and its own.',
  }),
};

const parts = {
  schedule: ScheduleAnswer.nullable().meta({
    description: 'Pending schedule. Present if `expand` names schedule; null without one.',
  }),
  plan: PlanAnswer.nullable().meta({
    description: 'Plan. Present for a single subscription, or if `expand` names plan; else null.',
  }),
  customer: CustomerAnswer.nullable().meta({
    description: 'Customer. Present for a single subscription, or if `expand` names customer; else null.',
  }),
  line_items: z
    .array(SubscriptionLineItemAnswer)
    .nullable()
    .meta({ description: 'Line items. Present for a single subscription, or on request; else null.' }),
};

export const SubscriptionAnswer = Subscription.extend({
  ...clientCompatibilityFields,
  ...parts,
  latest_invoice: InvoiceWithoutParts.nullable().meta({
    description: 'Opening invoice, in the answer to the creation; else null.',
  }),
  entitlements: z
    .array(EntitledFeatureAnswer)
    .nullable()
    .meta({ description: 'Current entitlements. Present if `expand` names entitlements; else null.' }),
  checkout_session: CheckoutSessionAnswer.nullable().meta({
    description: 'Checkout of the subscription, in the answer to its creation; null without one.',
  }),
  warnings,
}).meta({ id: 'SubscriptionResponse' });

export const PreviewSubscriptionAnswer = SubscriptionAnswer.extend({
  next_invoice: InvoiceWithoutParts.nullable().meta({
    description:
      'Invoice after the opening one, with the usage so far; the opening invoice of a draft, a trial or a later start. Null if the invoices of the parent include the subscription.',
  }),
}).meta({ id: 'PreviewSubscriptionResponse' });

export const SubscriptionAnswerV2 = Subscription.extend({
  ...clientCompatibilityFields,
  ...parts,
  plan_prices_out_of_sync: z
    .boolean()
    .meta({ description: 'True if the plan has newer prices that the line items do not include.' }),
}).meta({ id: 'SubscriptionResponseV2' });
