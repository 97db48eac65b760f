/** Line changes lock the subscription's row first. Two changes of one line, or a change and a billing run, then run one after the other. */
import { notFound } from '../../../core/foundation/error.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { checkLinesChange, type LineTimes } from '../../../core/subscriptions/line-changes.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import type { PriceWriteContext } from '../../catalog/prices/create-price.ts';
import { emit } from '../../foundation/emit.ts';
import { type BillableItem, currentPeriod, gatherItems, toBilledSubscription } from '../../rating/billable-items.ts';
import { lockUpToDate } from './lock-with-parent.ts';

/** Context of a change of lines. The subscription stays locked until its transaction ends. */
type LineWriting = PriceWriteContext & { readonly database: Transaction };

export type LockedSubscription = { readonly subscription: SubscriptionModel; readonly times: LineTimes };

export async function lockSubscription(
  stores: Stores,
  id: string,
  { scope, database, author }: LineWriting,
): Promise<LockedSubscription> {
  const subscription = await lockUpToDate(stores, id, { scope, database, now: author.now });
  checkLinesChange(subscription);
  return toLockedSubscription(subscription, author);
}

/** Builds the locked form of a subscription that this transaction has already locked or has created. */
export function toLockedSubscription(subscription: SubscriptionModel, author: Author): LockedSubscription {
  const { end_ms } = toBilledSubscription(subscription);
  const times = { subscription, end_ms, current: currentPeriod(subscription), now: author.now.getTime() };
  return { subscription, times };
}

/** Locks the subscription and reads the line. */
export async function lockLine(
  stores: Stores,
  id: string,
  writing: LineWriting,
): Promise<LockedSubscription & { item: BillableItem }> {
  const { scope, database } = writing;
  const { subscription_id } = await SubscriptionLineItemModel.fetchPublished(scope, id, { database });
  const locked = await lockSubscription(stores, subscription_id, writing);
  const item = (await gatherItems(database, locked.subscription)).find((one) => one.id === id);
  if (!item) throw notFound('subscription line item', id);
  return { ...locked, item };
}

/** Emits the change of lines, which raises the version of the subscription, too. */
export async function emitLinesChanged(
  transaction: Transaction,
  subscription: SubscriptionModel,
  author: Author,
): Promise<SubscriptionModel> {
  const changes = { version: subscription.version + 1 };
  const record = await SubscriptionModel.change(subscription, changes, { by: author, database: transaction });
  await emit(transaction, 'subscription.updated', { record, by: author });
  return record;
}
