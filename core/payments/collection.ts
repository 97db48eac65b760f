/**
 * Decides the amount and the method of an automatic collection (docs/rules/payments.md, "Collected by itself"). If a
 * postpaid wallet covers a part, the card or bank account pays the rest first. If that charge fails, the wallet retains
 * its credits, unless the invoice may be paid in part.
 */
import { Decimal } from '../foundation/decimal.ts';
import type { BillingReason, Invoice } from '../invoicing/invoice/record.ts';
import type { Subscription } from '../subscriptions/record.ts';

type PlannedCollection = { readonly by: 'payment_method' | 'credits'; readonly amount: Decimal };

type CollectionInput = {
  readonly remaining: Decimal;
  /** Part of `remaining` that the wallet can pay. */
  readonly covered: Decimal;
  /** Whether the customer has a card or a bank account. */
  readonly hasPaymentMethod: boolean;
  readonly allows_partial: boolean;
};

/** Decides what is collected; null if nothing is. */
export function computeCollection({
  remaining,
  covered,
  hasPaymentMethod,
  allows_partial,
}: CollectionInput): PlannedCollection | null {
  if (remaining.lte(0)) return null;
  if (covered.gte(remaining)) return { by: 'credits', amount: remaining };
  if (hasPaymentMethod) return { by: 'payment_method', amount: remaining.minus(covered) };
  return covered.gt(0) && allows_partial ? { by: 'credits', amount: covered } : null;
}

const OPENINGS: readonly BillingReason[] = ['SUBSCRIPTION_CREATE', 'SUBSCRIPTION_TRIAL_END'];

/**
 * Whether a collection may pay a part of the invoice. With `error_if_incomplete`, the first invoice of a subscription or of the time after
 * its trial is paid in full or not at all.
 */
export function canBePaidInPart(
  { billing_reason }: Pick<Invoice, 'billing_reason'>,
  subscription: Pick<Subscription, 'payment_behavior'> | null,
): boolean {
  return !(OPENINGS.includes(billing_reason) && subscription?.payment_behavior === 'error_if_incomplete');
}
