/** Checks and payment settings of a subscription whose customer pays its opening invoice on a page (docs/rules/checkout.md). */
import { checkCheckoutParams } from '../catalog/customer/checkout-params.ts';
import { invalid, notAllowed } from '../foundation/error.ts';
import type { SubscriptionHierarchy } from './hierarchy.ts';
import type { CreateSubscription, PaymentBehavior } from './record.ts';

type CheckoutTerms = Pick<
  CreateSubscription,
  'checkout' | 'collection_method' | 'payment_behavior' | 'subscription_status'
>;

export function checkSubscriptionCheckout(request: CheckoutTerms, { kind }: SubscriptionHierarchy): void {
  const { checkout, subscription_status, payment_behavior } = request;
  if (!checkout) return;
  checkCheckoutParams(checkout, 'checkout.');
  if (kind !== 'alone')
    throw notAllowed('a checkout of a subscription that is related to others is not supported yet', {
      field: 'checkout',
    });
  if (subscription_status === 'draft')
    throw invalid('checkout', 'is not for a draft, which has no opening invoice to pay');
  if (payment_behavior && !WAITING.includes(payment_behavior))
    throw notAllowed(`payment_behavior ${payment_behavior} is not possible with a checkout`, {
      field: 'payment_behavior',
      allowed: WAITING,
    });
}

/** Behaviors with which an unpaid subscription waits for its payment. */
const WAITING: readonly PaymentBehavior[] = ['allow_incomplete', 'default_incomplete'];

/** Adds the defaults of a checkout: the subscription is incomplete until the payment. */
export function applyCheckoutDefaults<Terms extends CheckoutTerms>(request: Terms): Terms {
  const { checkout, payment_behavior } = request;
  if (!checkout) return request;
  const collection_method =
    request.collection_method ?? checkout.payment_provider_config?.collection_method ?? 'charge_automatically';
  const waiting = collection_method === 'send_invoice' ? 'default_incomplete' : 'allow_incomplete';
  return { ...request, collection_method, payment_behavior: payment_behavior ?? waiting };
}
