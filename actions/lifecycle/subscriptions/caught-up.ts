/**
 * Does due work of a subscription that the scheduler has not done yet, before the subscription is changed: its opening,
 * and the end of its trial if the change takes effect later.
 */
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { endTrial } from './end-trial.ts';
import { openDue } from './open-due.ts';
import { propagateToChildren } from './propagate-to-children.ts';

/**
 * Brings the subscription up to date. `at` is the instant at which the change takes effect, by default now.
 * `transaction` holds the lock on the subscription's row.
 */
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
