/**
 * Detaches an add-on from its subscription: the association and its lines end with the running period, or inside it
 * (docs/rules/subscriptions.md, "Add-ons").
 */

import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { formatMs, type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { computeDetachInstant, type DetachAddon } from '../../../core/subscriptions/attachment.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { AddonAssociationModel } from '../../../storage/models/subscriptions/addon-association.ts';
import type { PriceWriteContext } from '../../catalog/prices/create-price.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { gatherItems } from '../../rating/billable-items.ts';
import { applyLineChange } from './apply-line-change.ts';
import { type LineChangePlan, planLineChange } from './change-lines.ts';
import { emitLinesChanged, type LockedSubscription, lockSubscription } from './lock-lines.ts';

type PlannedDetachment = { association: AddonAssociationModel; at: Milliseconds; plan: LineChangePlan };

/** Plans the detachment. `database` is the transaction that holds the lock on the subscription's row, or the pool for a preview. */
export async function planDetachment(
  { subscription, times }: LockedSubscription,
  request: DetachAddon,
  { scope, database, author }: PriceWriteContext,
): Promise<PlannedDetachment> {
  const association = await AddonAssociationModel.fetch(scope, request.addon_association_id, { database });
  if (association.entity_id !== subscription.id)
    throw invalid('addon_association_id', `is of subscription ${association.entity_id}`);
  const at = computeDetachInstant(association, request, times);
  const items = await gatherItems(database, subscription);
  const ends = items
    .filter(({ line_item }) => line_item.addon_association_id === association.id)
    .filter(({ line_item }) => !line_item.end_date || toInstant(line_item.end_date) > at)
    .map((item) => ({ item, at: Math.max(at, toInstant(item.line_item.start_date)) }));
  const plan = await planLineChange(database, {
    subscription,
    ends,
    begins: [],
    proration_behavior: request.proration_behavior ?? 'none',
    author,
  });
  return { association, at, plan };
}

export async function storeDetachment(
  { association, at }: PlannedDetachment,
  { reason }: Pick<DetachAddon, 'reason'>,
  { database, author }: Pick<PriceWriteContext, 'database' | 'author'>,
): Promise<AddonAssociationModel> {
  const now = author.now.toISOString();
  const changes = {
    end_date: formatMs(at),
    cancelled_at: now,
    cancellation_reason: reason,
    ...(at <= author.now.getTime() ? { addon_status: 'cancelled' as const } : {}),
  };
  return AddonAssociationModel.change(association, changes, { by: author, database });
}

export async function detachAddon(
  stores: Stores,
  scope: Scope,
  { request, author }: { request: DetachAddon; author: Author },
): Promise<AddonAssociationModel> {
  return runBillingTransaction(stores, async (transaction) => {
    const writing = { scope, database: transaction, author };
    const { addon_association_id } = request;
    const { entity_id } = await AddonAssociationModel.fetch(scope, addon_association_id, { database: transaction });
    const locked = await lockSubscription(stores, entity_id, writing);
    const planned = await planDetachment(locked, request, writing);
    const association = await storeDetachment(planned, request, writing);
    await applyLineChange(stores, transaction, planned.plan);
    await emitLinesChanged(transaction, locked.subscription, author);
    return association;
  });
}
