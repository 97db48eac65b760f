/**
 * A subscription with its row held. One that is invoiced with a parent has part of its charges on the parent's invoices:
 * the parent is held first, as whoever bills the parent does, so that the two never wait for each other.
 */
import { duePeriod } from '../../core/billing/due.ts';
import { FarthingError } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { checkVersion } from '../../core/subscription/version.ts';
import { toInstant } from '../../core/time/instant.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database, Stores, Transaction } from '../../storage/stores.ts';
import { billedSubscription, currentPeriod } from '../billing/billable-items.ts';
import { closeDuePeriods } from '../billing/close-period.ts';
import { runBillingTransaction } from '../billing/transaction.ts';
import { catchUpSubscription } from './caught-up.ts';
import { lockSubscriptions } from './lock-in-order.ts';

export function lockWithParent(scope: Scope, id: string, transaction: Transaction): Promise<SubscriptionModel> {
  return lockWithOthers(scope, { id, others: [] }, transaction);
}

/** `others`: those that the request names. */
async function lockWithOthers(
  scope: Scope,
  { id, others }: { id: string; others: readonly string[] },
  transaction: Transaction,
): Promise<SubscriptionModel> {
  const seen = await SubscriptionModel.fetch(scope, id, { database: transaction });
  const parent = seen.parent_subscription_id;
  const those = new Set([...others, ...(parent ? [parent] : []), id]);
  if (those.size > 1) await lockSubscriptions(scope, [...those], transaction);
  const held = await SubscriptionModel.fetch(scope, id, { database: transaction, lock: true });
  // It has joined another one before it was held, and that one is not.
  if (held.parent_subscription_id && !those.has(held.parent_subscription_id))
    throw new FarthingError('version_conflict', `subscription ${id} has joined another in between: try again`, {
      details: { parent_subscription_id: held.parent_subscription_id },
    });
  return held;
}

/**
 * Looks at a subscription as it is now, and writes nothing. Where something is due that the scheduler has not come to yet, it is done
 * as a change would do it first, in a transaction that is undone: a second way to say what comes of it could say something else.
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
  return duePeriod(billedSubscription(subscription), currentPeriod(subscription), now.getTime()) !== null;
}

export type LockUpToDateInput = {
  readonly scope: Scope;
  readonly database: Transaction;
  readonly now: Date;
  /** That the request names, and that are held with it. */
  readonly others?: readonly string[];
  /** That was read, where the request names it: what comes first counts for no change in between. */
  readonly version?: number | null | undefined;
};

/** As it is now: what the scheduler has not come to yet, its opening, the end of its trial, periods that are over, comes first. */
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
