/**
 * Opens a subscription at its start (docs/rules/subscriptions.md, "A start that lies ahead"). The opening invoice is created then, and the
 * payment behaviour applies then. A subscription that ends at or before its start is ended and never opened.
 */
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { emit } from '../../foundation/emit.ts';
import { currentPeriod, toBilledSubscription } from '../../rating/billable-items.ts';
import { openAndActivate } from '../invoices/open-and-activate.ts';
import { endAt } from './end-trial.ts';

/** Returns the subscription after it was opened or ended; null before its start. `transaction` holds the lock on its row. */
export async function openDue(
  stores: Stores,
  transaction: Transaction,
  { subscription, now }: { subscription: SubscriptionModel; now: Date },
): Promise<SubscriptionModel | null> {
  const by = { now };
  const { end_ms } = toBilledSubscription(subscription);
  const { start } = currentPeriod(subscription);
  const isOver = end_ms !== null && end_ms <= start;
  const due = isOver ? end_ms : toInstant(subscription.opens_at!);
  if (due > now.getTime()) return null;
  const reached = await SubscriptionModel.change(subscription, buildOpenedFields(isOver, start), {
    by,
    database: transaction,
  });
  if (isOver) return endAt(transaction, { subscription: reached, at: start, by });
  const open = await openAndActivate(stores, transaction, { subscription: reached, by });
  await emit(transaction, 'subscription.updated', { record: open.subscription, by });
  return open.subscription;
}

/** Builds the fields of an opened subscription. A subscription that ends before it begins has no active time. */
function buildOpenedFields(isOver: boolean, start: number): Partial<SubscriptionModel> {
  return isOver ? { opens_at: null, end_date: formatMs(start) } : { opens_at: null };
}
