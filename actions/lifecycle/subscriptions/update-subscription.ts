/**
 * Changes a subscription in place: metadata (replaced whole), lookup_key and the threshold of its invoices. Every
 * change increments `version`. A request with an outdated version is refused with version_conflict
 * (docs/rules/subscriptions.md, "One change at a time"). Requested cancellations and parents are handled by their own
 * operations.
 */

import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import { modifyShape } from '../../../core/subscriptions/modification.ts';
import type { Subscription, UpdateSubscription } from '../../../core/subscriptions/record.ts';
import { checkThreshold, toStoredThreshold } from '../../../core/subscriptions/terms.ts';
import { findRequestedVerb, type RequestedVerb } from '../../../core/subscriptions/update.ts';
import { checkVersion } from '../../../core/subscriptions/version.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { emit } from '../../foundation/emit.ts';
import { cancelSchedule } from './cancel-schedule.ts';
import { cancelSubscription } from './cancel-subscription.ts';
import { executeModification } from './modify-subscription.ts';

type SubscriptionUpdate = { id: string; request: UpdateSubscription; author: Author };

export async function updateSubscription(
  stores: Stores,
  scope: Scope,
  update: SubscriptionUpdate,
): Promise<SubscriptionModel> {
  const before = await SubscriptionModel.fetch(scope, update.id, { database: stores.postgres });
  const operation = findRequestedVerb(update.request, before);
  // The version is checked before the operation reads its other inputs; each operation checks it again with the lock held.
  if (operation) checkVersion(update.request.version, before);
  return operation ? doVerb(stores, scope, { ...update, operation }) : changeInPlace(stores, scope, update);
}

async function doVerb(
  stores: Stores,
  scope: Scope,
  { id, operation, author, request: { version } }: SubscriptionUpdate & { operation: RequestedVerb },
): Promise<SubscriptionModel> {
  switch (operation.verb) {
    case 'cancel': {
      const { cancellation_type, cancel_at } = operation;
      const terms = { invoice_policy: 'generate_invoice', proration_behavior: 'none', reason: null } as const;
      const request = { id, version, cancellation_type, cancel_at, ...terms, author };
      return (await cancelSubscription(stores, scope, request)).subscription;
    }
    case 'resume': {
      const named = { subscription_id: id, schedule_type: 'cancellation' } as const;
      await cancelSchedule(stores, scope, { named, version, author });
      return SubscriptionModel.fetch(scope, id, { database: stores.postgres });
    }
    case 'join': {
      const grouped_invoicing_params = { action: 'add', parent_subscription_id: operation.parent_subscription_id };
      const request = modifyShape.parse({ type: 'grouped_invoicing', grouped_invoicing_params });
      return (await executeModification(stores, scope, { id, version, request, author })).subscription;
    }
  }
}

function changeInPlace(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, request, author }: SubscriptionUpdate,
): Promise<SubscriptionModel> {
  return stores.postgres.transaction(async (transaction) => {
    const subscription = await SubscriptionModel.fetch(scope, id, { database: transaction, lock: true });
    checkVersion(request.version, subscription);
    const changes: Partial<Subscription> = {};
    if (request.metadata !== undefined) changes.metadata = request.metadata;
    if (request.lookup_key !== undefined) changes.lookup_key = request.lookup_key || null;
    if (request.auto_invoice_threshold !== undefined)
      changes.auto_invoice_threshold = await checkNewThreshold(
        subscription,
        request.auto_invoice_threshold,
        transaction,
      );
    if (Object.keys(changes).length === 0) return subscription;
    const conflict = `a subscription with lookup_key ${changes.lookup_key} exists already`;
    const changed = await SubscriptionModel.change(subscription, changes, {
      by: author,
      database: transaction,
      conflict,
    });
    if (changed !== subscription) await emit(transaction, 'subscription.updated', { record: changed, by: author });
    return changed;
  });
}

/** Checks a new threshold: all lines that continue or begin later must be usage lines. */
async function checkNewThreshold(
  subscription: SubscriptionModel,
  threshold: string | null,
  database: Transaction,
): Promise<string | null> {
  const lines = await SubscriptionLineItemModel.in(subscription, database)
    .where({ subscription_id: subscription.id, status: 'published' })
    .where((lives) => void lives.whereNull('end_date').orWhere('end_date', '>', subscription.current_period_start));
  const prices = lines.map(({ price_type }) => ({ type: price_type }));
  checkThreshold(threshold, prices, subscription.subscription_type);
  return toStoredThreshold(threshold);
}
