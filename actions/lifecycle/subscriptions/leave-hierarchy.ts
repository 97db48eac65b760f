/**
 * Ends a subscription of a hierarchy before the end of the parent's period. The parent advances the periods of its
 * children, but a child may end earlier (docs/rules/subscriptions.md, "Families"). The amount that a grouped
 * subscription owes until its end is on the parent's next invoice.
 */

import type { Scope } from '../../../core/foundation/scope.ts';
import { duePeriod } from '../../../core/rating/due.ts';
import { planInheritedChanges } from '../../../core/subscriptions/propagation.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { MOVED_BY_PARENT } from '../../../storage/queue/due-billing.ts';
import { emit } from '../../foundation/emit.ts';
import { currentPeriod, toBilledSubscription } from '../../rating/billable-items.ts';
import { endWithCredits } from './end-with-credits.ts';
import { lockWithParent } from './lock-with-parent.ts';

type LeaveHierarchyInput = { readonly subscription_id: string; readonly now: Date };

/**
 * Ends a child that has reached its end; returns whether it did. A child does not end while its parent has an earlier
 * period to invoice.
 */
export async function leaveHierarchyIfDue(
  scope: Scope,
  { subscription_id, now }: LeaveHierarchyInput,
  transaction: Transaction,
): Promise<boolean> {
  const [seen] = await SubscriptionModel.in(scope, transaction)
    .where({ id: subscription_id, status: 'published' })
    .whereIn('subscription_type', MOVED_BY_PARENT);
  if (!seen) return false;
  const child = await lockWithParent(scope, subscription_id, transaction);
  const isThere = ['active', 'trialing'].includes(child.subscription_status);
  if (!isThere || !MOVED_BY_PARENT.includes(child.subscription_type)) return false;
  return child.subscription_type === 'INHERITED'
    ? endInherited(transaction, { inherited: child, now })
    : leaveGroup(transaction, { child, now });
}

async function endInherited(
  transaction: Transaction,
  { inherited, now }: { inherited: SubscriptionModel; now: Date },
): Promise<boolean> {
  if (!inherited.end_date) return false;
  // The subscription itself is passed as the parent, so that only its own end matters.
  const changes = planInheritedChanges(inherited, inherited, now.getTime());
  if (changes === null) return false;
  const by = { now };
  const record = await SubscriptionModel.change(inherited, changes, { by, database: transaction });
  await emit(transaction, 'subscription.cancelled', { record, by });
  return true;
}

async function leaveGroup(
  transaction: Transaction,
  { child, now }: { child: SubscriptionModel; now: Date },
): Promise<boolean> {
  const due = duePeriod(toBilledSubscription(child), currentPeriod(child), now.getTime());
  if (due === null || due.next !== null) return false;
  await endWithCredits(transaction, { subscription: child, at: due.closed.end, by: { now } });
  return true;
}
