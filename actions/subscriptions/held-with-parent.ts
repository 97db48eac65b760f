/**
 * A subscription with its row held. One that is invoiced with a parent has part of its charges on the parent's invoices:
 * the parent is held first, as whoever bills the parent does, so that the two never wait for each other.
 */
import type { Scope } from '../../core/scope.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { closeDuePeriods } from '../billing/close-period.ts';
import { caughtUp } from './caught-up.ts';

export async function heldWithParent(scope: Scope, id: string, transaction: Transaction): Promise<SubscriptionModel> {
  const seen = await SubscriptionModel.fetch(scope, id, { database: transaction });
  const holding = { database: transaction, lock: true };
  if (seen.parent_subscription_id) await SubscriptionModel.fetch(scope, seen.parent_subscription_id, holding);
  return SubscriptionModel.fetch(scope, id, holding);
}

/** As it is now: what the scheduler has not come to yet, its opening, the end of its trial, periods that are over, comes first. */
export async function heldUpToDate(
  stores: Stores,
  id: string,
  { scope, database, now }: { scope: Scope; database: Transaction; now: Date },
): Promise<SubscriptionModel> {
  const locked = await heldWithParent(scope, id, database);
  const open = await caughtUp(stores, database, { subscription: locked, now });
  return closeDuePeriods(stores, database, { subscription: open, now });
}
