/** Subscriptions and their line items as they are answered. */
import { z } from 'zod';
import { Subscription, SubscriptionLineItem } from '../../core/subscription/record.ts';
import { CustomerAnswer } from '../customers/schema.ts';
import { InvoiceWithoutParts } from '../invoices/answer.ts';
import { MeterAnswer } from '../meters/schema.ts';
import { PlanAnswer } from '../plans/schema.ts';
import { PriceAnswer } from '../prices/schema.ts';

/** `trial_period` is the published client's name of `trial_period_days`. */
export const SubscriptionLineItemAnswer = SubscriptionLineItem.extend({
  trial_period: z.int(),
  commitment_time_buckets: z.null(),
  meter: MeterAnswer.nullable(),
  price: PriceAnswer.nullable(),
}).meta({ id: 'SubscriptionLineItemResponse' });

/** Pausing was removed from the interface, and coupons, phases and grants come later; the published client needs the keys. */
const keptForTheClient = {
  customer_timezone: z.string(),
  pause_status: z.literal('none'),
  active_pause_id: z.null(),
  pauses: z.null(),
  coupon_associations: z.array(z.never()).nullable(),
  phases: z.null(),
  credit_grants: z.null(),
};

const parts = {
  plan: PlanAnswer.nullable(),
  customer: CustomerAnswer.nullable(),
  line_items: z.array(SubscriptionLineItemAnswer).nullable(),
};

export const SubscriptionAnswer = Subscription.extend({
  ...keptForTheClient,
  ...parts,
  latest_invoice: InvoiceWithoutParts.nullable(),
  entitlements: z.array(z.never()).nullable(),
  checkout_session: z.null(),
}).meta({ id: 'SubscriptionResponse' });

export const SubscriptionAnswerV2 = Subscription.extend({
  ...keptForTheClient,
  ...parts,
  /** Whether the plan has got prices since that the line items do not know. */
  plan_prices_out_of_sync: z.boolean(),
}).meta({ id: 'SubscriptionResponseV2' });
