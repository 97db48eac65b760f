/**
 * Activates a draft: its dates are computed again from the start that is given, and it is opened
 * (docs/rules/subscriptions.md, "States"). Line items that began with the draft begin with the new start.
 */

import type { Scope } from '../../core/scope.ts';
import { type Author, updatedBy } from '../../core/stamp.ts';
import { firstPeriod } from '../../core/subscription/calendar.ts';
import { moveOf } from '../../core/subscription/moves.ts';
import { instantOf } from '../../core/time/instant.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { openAndSettle } from '../invoices/open-and-settle.ts';
import { changeSubscription } from './update-subscription.ts';

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
    const started = await changeSubscription(
      scope,
      { subscription: draft, changes: { ...calendar, subscription_status }, author },
      transaction,
    );
    await moveLineItems(scope, { draft, started, author }, transaction);
    return (await openAndSettle(stores, transaction, { subscription: started, author })).subscription;
  });
}

/** An anchor that the draft was given stays; one that was its start follows the start. */
function keptAnchor(draft: SubscriptionModel): string | null {
  if (draft.billing_cycle === 'calendar') return null;
  return instantOf(draft.billing_anchor) === instantOf(draft.start_date) ? null : draft.billing_anchor;
}

async function moveLineItems(
  scope: Scope,
  { draft, started, author }: { draft: SubscriptionModel; started: SubscriptionModel; author: Author },
  transaction: Database,
): Promise<void> {
  const items = await SubscriptionLineItemModel.in(scope, transaction).where('subscription_id', draft.id);
  const start = instantOf(started.start_date);
  for (const item of items) {
    const isOver = item.end_date && instantOf(item.end_date) <= start;
    const followed = instantOf(item.start_date) === instantOf(draft.start_date) || instantOf(item.start_date) < start;
    if (isOver || !followed) continue;
    await SubscriptionLineItemModel.in(scope, transaction)
      .where('id', item.id)
      .patch({ start_date: started.start_date, ...updatedBy(author) });
  }
}
