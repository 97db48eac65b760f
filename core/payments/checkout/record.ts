/** Checkout session: a page of a payment provider on which a customer pays for one action (docs/rules/checkout.md). */
import { z } from 'zod';
import { checkoutParamsShape, checkoutProviderConfigShape } from '../../catalog/customer/checkout-params.ts';
import {
  anyCase,
  anythingOrNull,
  baseFields,
  keyText,
  metadata,
  metadataMap,
  orNull,
  timestampText,
} from '../../foundation/record.ts';
import { DAY_MS } from '../../foundation/time/durations.ts';
import { SUBSCRIPTION_PERIODS } from '../../subscriptions/record.ts';

const CHECKOUT_ACTIONS = ['create_subscription', 'modify_subscription', 'wallet_topup', 'add_addon'] as const;
const CHECKOUT_STATUSES = ['initiated', 'pending', 'completed', 'failed', 'expired'] as const;
const PAYMENT_ACTION_TYPES = ['checkout_url', 'payment_link'] as const;

export type CheckoutAction = (typeof CHECKOUT_ACTIONS)[number];
type CheckoutStatus = (typeof CHECKOUT_STATUSES)[number];

/** Statuses of a session that can still be paid. */
export const OPEN_CHECKOUTS: readonly CheckoutStatus[] = ['initiated', 'pending'];

const subscriptionParams = z.object({
  subscription_id: orNull(z.string()).meta({
    description: 'Id of the created subscription. It is set by the service and refused in a request.',
  }),
  plan_id: z.string().min(1).meta({ description: 'Plan of the subscription.' }),
  currency: z.string().length(3).meta({ description: 'Currency code (ISO 4217), case-insensitive.' }),
  lookup_key: orNull(keyText).meta({ description: 'Your own unique name of the subscription.' }),
  start_date: orNull(timestampText).meta({
    description: 'Start of the subscription; a future start is refused. Default: now.',
  }),
  end_date: orNull(timestampText).meta({ description: 'End of the subscription. Default: none.' }),
  billing_period: anyCase(SUBSCRIPTION_PERIODS).meta({ description: 'Billing period of the subscription.' }),
  metadata,
});

const topUpParams = z.object({
  wallet_id: z.string().min(1).meta({ description: 'Wallet for which credits are bought.' }),
  wallet_transaction_id: orNull(z.string()).meta({
    description: 'Pending purchase that is paid. Default: the only pending purchase of the wallet.',
  }),
});

/** Parameters of the action that the payment triggers, as stored and returned. */
const checkoutConfigurationShape = z.object({
  create_subscription_params: orNull(subscriptionParams).meta({
    description: 'Subscription of the action `create_subscription`; else null.',
  }),
  wallet_topup_params: orNull(topUpParams).meta({
    description: 'Purchase of the action `wallet_topup`; else null.',
  }),
  modify_subscription_params: anythingOrNull.meta({ description: 'Not supported yet: refused unless null.' }),
  add_addon_params: anythingOrNull.meta({ description: 'Not supported yet: refused unless null.' }),
});
export type CheckoutConfiguration = z.output<typeof checkoutConfigurationShape>;

export const PaymentAction = z.object({
  type: z.enum(PAYMENT_ACTION_TYPES).meta({ description: 'Kind of page: `checkout_url`.' }),
  url: z.string().meta({ description: 'URL of the page of the provider.' }),
});

const commonFields = {
  id: z.string(),
  customer_id: z.string().meta({ description: 'Customer that pays.' }),
  action: z.enum(CHECKOUT_ACTIONS).meta({ description: 'Action that the payment completes.' }),
  checkout_status: z.enum(CHECKOUT_STATUSES).meta({
    description:
      'Status: `initiated` before the page is open, `pending` while it can be paid, then `completed`, `failed` or `expired`.',
  }),
  payment_provider: z.string().meta({ description: 'Provider that shows the page.' }),
  checkout_invoice_id: z.string().nullish().meta({
    description: 'Invoice that is paid; null if there is nothing to pay.',
  }),
  checkout_payment_id: z.string().nullish().meta({
    description: 'Payment of the page; null if there is nothing to pay.',
  }),
};
const endFields = {
  failure_reason: z.string().nullish().meta({
    description: 'Reason of `failed` or `expired`, for people; else null.',
  }),
  expires_at: timestampText.meta({ description: 'Time at which an unpaid page is closed: a day after its creation.' }),
  completed_at: timestampText.nullish().meta({ description: 'Time of the completion; null before.' }),
  cancelled_at: timestampText.nullish().meta({
    description: 'Time at which a request closed the session; else null.',
  }),
};

export const CheckoutSession = z.object({
  ...commonFields,
  configuration: checkoutConfigurationShape.nullish().meta({ description: 'Parameters of the action.' }),
  payment_provider_config: checkoutProviderConfigShape.nullish().meta({
    description: 'Terms of the payment; null without any.',
  }),
  idempotency_key: z.string().nullish().meta({ description: 'Idempotency key of the request; null without one.' }),
  success_url: z.string().nullish().meta({ description: 'URL to which the page leads after the payment.' }),
  failure_url: z.string().nullish().meta({ description: 'URL to which the page leads without a payment.' }),
  cancel_url: z.string().nullish().meta({ description: 'URL to which the page leads if the customer leaves it.' }),
  ...endFields,
  metadata: metadataMap.nullish().meta({ description: 'Key-value pairs of your own; null without any.' }),
  ...baseFields,
});
export type CheckoutSession = z.infer<typeof CheckoutSession>;

/** Shape of a session in the body of its webhooks. */
export const CheckoutSessionEvent = z.object({
  ...commonFields,
  ...endFields,
  payment_action: PaymentAction.nullish(),
});

export const createCheckoutSessionShape = checkoutParamsShape.extend({
  customer_external_id: z.string().min(1).meta({ description: 'External id of the customer that pays.' }),
  action: anyCase(CHECKOUT_ACTIONS).meta({
    description:
      'Action that the payment completes: create_subscription or wallet_topup. modify_subscription and add_addon are refused.',
  }),
  configuration: orNull(checkoutConfigurationShape).meta({
    description: 'Parameters of the action. Those of another action are refused.',
  }),
});
export type CreateCheckoutSession = z.output<typeof createCheckoutSessionShape>;

type PagePayment = { readonly created_at: string };

/** Computes the end of the page of a checkout: one day after its creation, even if its provider allows more. */
export function computePageEnd({ created_at }: PagePayment): Date {
  return new Date(Date.parse(created_at) + DAY_MS);
}
