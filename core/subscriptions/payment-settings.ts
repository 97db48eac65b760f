/**
 * Valid pairs of collection method and payment behavior, and the status of a subscription after its opening invoice
 * (docs/rules/subscriptions.md, "The opening"). An amount of zero counts as paid.
 */

import { Decimal } from '../foundation/decimal.ts';
import { notAllowed } from '../foundation/error.ts';
import type { CollectionMethod, PaymentBehavior, SubscriptionStatus } from './record.ts';

type PaymentSettings = { collection_method: CollectionMethod; payment_behavior: PaymentBehavior };

const ALLOWED: Record<CollectionMethod, readonly PaymentBehavior[]> = {
  send_invoice: ['default_active', 'default_incomplete'],
  charge_automatically: ['allow_incomplete', 'error_if_incomplete', 'default_active'],
};

/** Applies the defaults and refuses an invalid pair. `default_incomplete` is a legacy spelling of a collection method. */
export function resolvePaymentSettings(given: {
  collection_method?: CollectionMethod | 'default_incomplete' | null;
  payment_behavior?: PaymentBehavior | null;
}): PaymentSettings {
  if (given.collection_method === 'default_incomplete') {
    return { collection_method: 'charge_automatically', payment_behavior: 'allow_incomplete' };
  }
  const collection_method = given.collection_method ?? 'charge_automatically';
  const payment_behavior = given.payment_behavior ?? 'default_active';
  if (!ALLOWED[collection_method].includes(payment_behavior)) {
    throw notAllowed(
      `payment_behavior ${payment_behavior} is not possible with collection_method ${collection_method}`,
      {
        field: 'payment_behavior',
        allowed: ALLOWED[collection_method],
      },
    );
  }
  return { collection_method, payment_behavior };
}

/** Status after the invoice that opens the subscription or ends its trial. `amount_remaining` is null without an invoice. */
export function deriveStatusAfterInvoice(
  behavior: PaymentBehavior,
  amount_remaining: string | null,
): SubscriptionStatus {
  const isSettled = amount_remaining === null || new Decimal(amount_remaining).lte(0);
  return isSettled || behavior === 'default_active' ? 'active' : 'incomplete';
}

/**
 * Throws for `error_if_incomplete` if something remains to be paid. Requests call this one; jobs call
 * `deriveStatusAfterInvoice`, because no client waits for an error.
 */
export function deriveStatusAfterOpening(
  behavior: PaymentBehavior,
  amount_remaining: string | null,
): SubscriptionStatus {
  const status = deriveStatusAfterInvoice(behavior, amount_remaining);
  if (status === 'incomplete' && behavior === 'error_if_incomplete') {
    throw notAllowed('the opening invoice cannot be paid now, and payment_behavior is error_if_incomplete', {
      field: 'payment_behavior',
      amount_remaining,
    });
  }
  return status;
}
