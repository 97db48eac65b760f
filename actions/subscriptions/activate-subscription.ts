/**
 * Activates a draft: its dates are computed again from the start that is given, and it is opened
 * (docs/rules/subscriptions.md, "States"). Line items that began with the draft begin with the new start.
 */

import type { Scope } from '../../core/scope.ts';
import { type Author } from '../../core/stamp.ts';
import { firstPeriod } from '../../core/subscription/calendar.ts';
import { moveOf } from '../../core/subscription/moves.ts';
import { instantOf } from '../../core/time/instant.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { openAndSettle } from '../invoices/open-and-settle.ts';
import { emit } from '../system-events/emit.ts';

export type Activation = { id: string; start_date: string; author: Author };

export async function activateSubscription(
  stores: Stores,
  scope: Scope,
  { id, start_date, author }: Activation,
): Promise<SubscriptionModel> {
  return stores.postgres.transaction(async (transaction) => {
    const draft = await SubscriptionModel.fetch(scope, id, { database: transaction, lock: true });
    const subscription_status = moveOf('activate', draft.subscription_status);
    const calendar = firstPeriod({ ...draft, start_date, billing_anchor: keptAnchor(draft) }, author.now.getTime());
    const by = { by: author, database: transaction };
    const started = await SubscriptionModel.change(draft, { ...calendar, subscription_status }, by);
    await moveLineItems({ draft, started, author }, transaction);
    const { subscription } = await openAndSettle(stores, transaction, { subscription: started, author });
    // One that waits for its opening invoice to be paid is activated by the payment.
    const name = subscription.subscription_status === 'incomplete' ? 'subscription.updated' : 'subscription.activated';
    await emit(transaction, name, { record: subscription, by: author });
    return subscription;
  });
}

/** An anchor that the draft was given stays; one that was its start follows the start. */
function keptAnchor(draft: SubscriptionModel): string | null {
  if (draft.billing_cycle === 'calendar') return null;
  return instantOf(draft.billing_anchor) === instantOf(draft.start_date) ? null : draft.billing_anchor;
}

async function moveLineItems(
  { draft, started, author }: { draft: SubscriptionModel; started: SubscriptionModel; author: Author },
  transaction: Transaction,
): Promise<void> {
  const items = await SubscriptionLineItemModel.in(draft, transaction).where('subscription_id', draft.id);
  const start = instantOf(started.start_date);
  for (const item of items) {
    const isOver = item.end_date && instantOf(item.end_date) <= start;
    const followed = instantOf(item.start_date) === instantOf(draft.start_date) || instantOf(item.start_date) < start;
    if (isOver || !followed) continue;
    const { start_date } = started;
    await SubscriptionLineItemModel.change(item, { start_date }, { by: author, database: transaction });
  }
}
