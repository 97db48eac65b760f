/** Checkout session of a subscription, whose opening invoice the customer pays on a page (docs/rules/checkout.md). */
import type { CheckoutParams } from '../../../core/catalog/customer/checkout-params.ts';
import { invalid } from '../../../core/foundation/error.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { CreateSubscription } from '../../../core/subscriptions/record.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import type { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { addCheckoutSession } from './start-checkout.ts';

/** Adds the session before the subscription is opened, so that the opening invoice is not collected automatically. */
export async function addSubscriptionCheckout(
  transaction: Transaction,
  subscription: SubscriptionModel,
  { request, checkout, author }: { request: CreateSubscription; checkout: CheckoutParams; author: Author },
): Promise<CheckoutSessionModel> {
  if (subscription.opens_at) throw invalid('start_date', 'must not lie ahead of a checkout, which is paid now');
  const { id: subscription_id, customer_id } = subscription;
  return addCheckoutSession(transaction, subscription, {
    checkout,
    action: 'create_subscription',
    customer_id,
    subscription_id,
    configuration: { create_subscription_params: toSubscriptionParams(subscription_id, request) },
    author,
  });
}

export function toSubscriptionParams(subscription_id: string, request: CreateSubscription) {
  const { plan_id, currency, lookup_key, start_date, end_date, billing_period, metadata } = request;
  return {
    subscription_id,
    plan_id,
    currency: currency.toLowerCase(),
    lookup_key,
    start_date: start_date ?? null,
    end_date: end_date ?? null,
    billing_period,
    metadata,
  };
}
