/**
 * Locks a subscription. A grouped subscription has charges on its parent's invoices. So the parent is locked first, as a billing run of the
 * parent does, which prevents deadlocks.
 */

import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { duePeriod } from '../../../core/rating/due.ts';
import { checkVersion } from '../../../core/subscriptions/version.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { currentPeriod, toBilledSubscription } from '../../rating/billable-items.ts';
import { lockSubscriptions } from '../../subscriptions/lock-in-order.ts';
import { closeDuePeriods } from '../billing/close-period.ts';
import { catchUpSubscription } from './caught-up.ts';

export function lockWithParent(scope: Scope, id: string, transaction: Transaction): Promise<SubscriptionModel> {
  return lockWithOthers(scope, { id, others: [] }, transaction);
}

/** Locks the subscription, its parent, and the subscriptions that the request names (`others`). */
async function lockWithOthers(
  scope: Scope,
  { id, others }: { id: string; others: readonly string[] },
  transaction: Transaction,
): Promise<SubscriptionModel> {
  const seen = await SubscriptionModel.fetch(scope, id, { database: transaction });
  const parent = seen.parent_subscription_id;
  const those = new Set([...others, ...(parent ? [parent] : []), id]);
  if (those.size > 1) await lockSubscriptions(scope, [...those], transaction);
  const locked = await SubscriptionModel.fetch(scope, id, { database: transaction, lock: true });
  // The subscription joined a parent after the first read, so that parent is not locked.
  if (locked.parent_subscription_id && !those.has(locked.parent_subscription_id))
    throw new FarthingError('version_conflict', `subscription ${id} has joined another in between: try again`, {
      details: { parent_subscription_id: locked.parent_subscription_id },
    });
  return locked;
}

/**
 * Reads a subscription as it is after all due work, and writes nothing. If the scheduler has not done that work yet, it runs here in a
 * transaction that is rolled back, because a separate computation of its result could differ.
 */
export async function readUpToDate<T>(
  stores: Stores,
  id: string,
  { scope, now, others = [] }: { scope: Scope; now: Date; others?: readonly string[] },
  read: (database: Database, subscription: SubscriptionModel) => Promise<T>,
): Promise<T> {
  const database = stores.postgres;
  const seen = await SubscriptionModel.fetch(scope, id, { database });
  if (!hasDueWork(seen, now)) return read(database, seen);
  const readLocked = async (transaction: Transaction): Promise<T> =>
    read(transaction, await lockUpToDate(stores, id, { scope, database: transaction, now, others }));
  return runBillingTransaction(stores, readLocked, () => false);
}

function hasDueWork(subscription: SubscriptionModel, now: Date): boolean {
  const { opens_at, subscription_status } = subscription;
  if (opens_at) return toInstant(opens_at) <= now.getTime();
  if (subscription_status !== 'active' && subscription_status !== 'trialing') return false;
  return duePeriod(toBilledSubscription(subscription), currentPeriod(subscription), now.getTime()) !== null;
}

type LockUpToDateInput = {
  readonly scope: Scope;
  readonly database: Transaction;
  readonly now: Date;
  /** Other subscriptions that the request names. They are locked as well. */
  readonly others?: readonly string[];
  /**
   * The version that the caller has read, if the request names it. It is checked before the due work, so that this work causes no conflict.
   */
  readonly version?: number | null | undefined;
};

/**
 * Locks and returns the current subscription. Due work that the scheduler has not done yet runs first: its opening, the end of its trial,
 * and periods that are over.
 */
export async function lockUpToDate(
  stores: Stores,
  id: string,
  { scope, database, now, others = [], version }: LockUpToDateInput,
): Promise<SubscriptionModel> {
  const locked = await lockWithOthers(scope, { id, others }, database);
  checkVersion(version, locked);
  const open = await catchUpSubscription(stores, database, { subscription: locked, now });
  return closeDuePeriods(stores, database, { subscription: open, now });
}
