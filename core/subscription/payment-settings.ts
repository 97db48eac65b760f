/**
 * Which payment behaviours go with which way to collect, and whether a subscription is active once its opening invoice is
 * known (docs/rules/subscriptions.md, "The opening"). Nothing due counts as paid.
 */

import { Decimal } from '../decimal.ts';
import { notAllowed } from '../error.ts';
import type { CollectionMethod, PaymentBehavior, SubscriptionStatus } from './record.ts';

export type PaymentSettings = { collection_method: CollectionMethod; payment_behavior: PaymentBehavior };

const ALLOWED: Record<CollectionMethod, readonly PaymentBehavior[]> = {
  send_invoice: ['default_active', 'default_incomplete'],
  charge_automatically: ['allow_incomplete', 'error_if_incomplete', 'default_active'],
};

/** The settings with their defaults, or a refusal of the pair. `default_incomplete` as a collection method is an old spelling. */
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

/**
 * Where a subscription stands once the invoice that opens it, or that ends its trial, is known; `amount_remaining` is null
 * without an invoice.
 */
export function deriveStatusAfterInvoice(
  behavior: PaymentBehavior,
  amount_remaining: string | null,
): SubscriptionStatus {
  const isSettled = amount_remaining === null || new Decimal(amount_remaining).lte(0);
  return isSettled || behavior === 'default_active' ? 'active' : 'incomplete';
}

/** As `statusAfterInvoice`; a request that opens one is refused where its behaviour says so, and a job has nobody to refuse. */
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
