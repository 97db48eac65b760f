/**
 * A subscription with its row held. One that is invoiced with a parent has part of its charges on the parent's invoices:
 * the parent is held first, as whoever bills the parent does, so that the two never wait for each other.
 */
import type { Scope } from '../../core/scope.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Transaction } from '../../storage/stores.ts';

export async function heldWithParent(scope: Scope, id: string, transaction: Transaction): Promise<SubscriptionModel> {
  const seen = await SubscriptionModel.fetch(scope, id, { database: transaction });
  const holding = { database: transaction, lock: true };
  if (seen.parent_subscription_id) await SubscriptionModel.fetch(scope, seen.parent_subscription_id, holding);
  return SubscriptionModel.fetch(scope, id, holding);
}
