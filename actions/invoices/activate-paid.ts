/** A subscription that waits for its opening invoice becomes active when that is paid (docs/rules/subscriptions.md, "States"). */
import { Decimal } from '../../core/decimal.ts';
import type { BillingReason } from '../../core/invoice/record.ts';
import type { Author } from '../../core/stamp.ts';
import { stateAfter } from '../../core/subscription/moves.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { familyFollows } from '../subscriptions/follow-parent.ts';
import { emit } from '../system-events/emit.ts';
import type { HeldInvoice } from './hold-invoice.ts';

/** What a subscription that is incomplete waits for. */
const WAITED_FOR: readonly BillingReason[] = ['SUBSCRIPTION_CREATE', 'SUBSCRIPTION_TRIAL_END', 'SUBSCRIPTION_UPDATE'];

/** Whatever has brought down what remains of the invoice: a payment, or a credit note. */
export async function activateWhenPaid(
  stores: Stores,
  transaction: Transaction,
  { invoice, subscription, author }: HeldInvoice & { author: Author },
): Promise<void> {
  if (!subscription || !WAITED_FOR.includes(invoice.billing_reason)) return;
  if (new Decimal(invoice.amount_remaining).gt(0)) return;
  const subscription_status = stateAfter('pay', subscription.subscription_status);
  if (subscription_status === undefined) return;
  const by = { by: author, database: transaction };
  const activated = await SubscriptionModel.change(subscription, { subscription_status }, by);
  await emit(transaction, 'subscription.activated', { record: activated, by: author });
  await familyFollows(stores, transaction, { parent: activated, by: author });
}
