/**
 * Activates a draft: its dates are recomputed from the given start, and it is opened (docs/rules/subscriptions.md, "Drafts"). Line items
 * that began with the draft begin with the new start.
 */

import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { findOpening, planFirstPeriod } from '../../../core/subscriptions/calendar.ts';
import { deriveStartStatus, requireStateAfter } from '../../../core/subscriptions/moves.ts';
import { applyTrial, findRequestedAnchor, moveTrial } from '../../../core/subscriptions/trial.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { beginGrants } from '../../credits/grants/give-grants.ts';
import { emit } from '../../foundation/emit.ts';
import { moveAddons } from '../../subscriptions/move-addons.ts';
import { checkBeginAfterFormerHolders, checkInheritsNothing } from '../../subscriptions/one-of-a-kind.ts';
import { moveGrants } from '../../subscriptions/own-grants.ts';
import { checkSharedMeters } from '../../subscriptions/shared-meters.ts';
import { openAndActivate } from '../invoices/open-and-activate.ts';
import { collectOpening } from '../payments/collect-opening.ts';
import { propagateToChildren } from './propagate-to-children.ts';

type Activation = { id: string; start_date: string; author: Author };

export async function activateSubscription(
  stores: Stores,
  scope: Scope,
  { id, start_date, author }: Activation,
): Promise<SubscriptionModel> {
  const opened = await stores.postgres.transaction(async (transaction) => {
    const draft = await SubscriptionModel.fetch(scope, id, { database: transaction, lock: true });
    const holding = { database: transaction, lock: true };
    const customers = [await CustomerModel.fetch(scope, draft.customer_id, holding)];
    const beginning = { customers, from: toInstant(start_date), field: 'customer_id' };
    await checkBeginAfterFormerHolders(scope, beginning, transaction);
    if (draft.subscription_type !== 'INHERITED') await checkInheritsNothing(scope, beginning, transaction);
    const by = { by: author, database: transaction };
    const started = await SubscriptionModel.change(draft, activation(draft, start_date, author.now.getTime()), by);
    await moveAddons({ draft, started, author }, transaction);
    await moveLineItems({ draft, started, author }, transaction);
    await moveGrants({ draft, started, author }, transaction);
    const lines = await SubscriptionLineItemModel.in(scope, transaction).where({
      subscription_id: id,
      status: 'published',
    });
    await checkSharedMeters(transaction, started, lines);
    const opened = await openAndActivate(stores, transaction, { subscription: started, by: author });
    const { subscription } = opened;
    // A subscription that waits for payment of its opening invoice is activated by the payment.
    const name = subscription.subscription_status === 'incomplete' ? 'subscription.updated' : 'subscription.activated';
    await emit(transaction, name, { record: subscription, by: author });
    await propagateToChildren(stores, transaction, { parent: subscription, by: author });
    await beginGrants(transaction, { subscription, by: author });
    return opened;
  });
  return (await collectOpening(stores, scope, { opened, author })).subscription;
}

function activation(draft: SubscriptionModel, start_date: string, now: Milliseconds): Partial<SubscriptionModel> {
  requireStateAfter('activate', draft.subscription_status);
  const terms = { ...draft, start_date, billing_anchor: findRequestedAnchor(draft) };
  const calendar = applyTrial(planFirstPeriod(terms, now), moveTrial(draft, toInstant(start_date)), terms);
  return { ...calendar, subscription_status: deriveStartStatus(calendar), opens_at: findOpening(calendar, now) };
}

async function moveLineItems(
  { draft, started, author }: { draft: SubscriptionModel; started: SubscriptionModel; author: Author },
  transaction: Transaction,
): Promise<void> {
  const items = await SubscriptionLineItemModel.in(draft, transaction).where('subscription_id', draft.id);
  const start = toInstant(started.start_date);
  for (const item of items) {
    const isOver = item.end_date && toInstant(item.end_date) <= start;
    const followed = toInstant(item.start_date) === toInstant(draft.start_date) || toInstant(item.start_date) < start;
    if (isOver || !followed) continue;
    const { start_date } = started;
    await SubscriptionLineItemModel.change(item, { start_date }, { by: author, database: transaction });
  }
}
