/**
 * Does the work that the scheduler has not done yet, before a subscription is changed. That is its opening, and the end of its trial if the
 * change takes effect after it.
 */
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { endTrial } from './end-trial.ts';
import { openDue } from './open-due.ts';
import { propagateToChildren } from './propagate-to-children.ts';

/** `at`: when the change takes effect; default now. `transaction` holds the lock on the subscription's row. */
export async function catchUpSubscription(
  stores: Stores,
  transaction: Transaction,
  { subscription, at, now }: { subscription: SubscriptionModel; at?: string | null; now: Date },
): Promise<SubscriptionModel> {
  const effective = at ? toInstant(at) : now.getTime();
  const open = subscription.opens_at ? await openDue(stores, transaction, { subscription, now }) : subscription;
  if (open === null) return subscription;
  if (open !== subscription) await propagateToChildren(stores, transaction, { parent: open, by: { now } });
  if (open.subscription_status !== 'trialing' || effective <= toInstant(open.current_period_end)) return open;
  const ended = await endTrial(stores, transaction, { subscription: open, by: { now } });
  if (ended === null) return open;
  await propagateToChildren(stores, transaction, { parent: ended.subscription, by: { now } });
  return ended.subscription;
}
