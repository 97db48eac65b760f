/**
 * Changes what may change on a subscription as it stands: metadata (replaced whole), lookup_key and the threshold of its invoices. States, dates and
 * parents have verbs of their own. Every change adds one to `version`; naming the version that was read refuses a change
 * that came in between with version_conflict (docs/rules/subscriptions.md, "One change at a time").
 */

import { FarthingError, notAllowed } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author } from '../../core/stamp.ts';
import { refuseUsed } from '../../core/subscription/not-yet.ts';
import type { Subscription, UpdateSubscription } from '../../core/subscription/record.ts';
import { checkThreshold, keptThreshold } from '../../core/subscription/terms.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';

export type SubscriptionUpdate = { id: string; request: UpdateSubscription; author: Author };

export async function updateSubscription(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, request, author }: SubscriptionUpdate,
): Promise<SubscriptionModel> {
  refuseOtherVerbs(request);
  return stores.postgres.transaction(async (transaction) => {
    const subscription = await SubscriptionModel.fetch(scope, id, { database: transaction, lock: true });
    if (request.version && request.version !== subscription.version) {
      throw new FarthingError('version_conflict', `subscription ${id} has version ${subscription.version}`, {
        details: { version: subscription.version },
      });
    }
    const changes: Partial<Subscription> = {};
    if (request.metadata !== undefined) changes.metadata = request.metadata;
    if (request.lookup_key !== undefined) changes.lookup_key = request.lookup_key || null;
    if (request.auto_invoice_threshold !== undefined)
      changes.auto_invoice_threshold = await thresholdOf(subscription, request.auto_invoice_threshold, transaction);
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

const CANCEL_FIELDS = ['cancel_at', 'cancel_at_period_end'] as const;

function refuseOtherVerbs(request: UpdateSubscription): void {
  if (request.status !== null || request.subscription_status !== null) {
    throw notAllowed('status: a subscription is activated by POST …/activate and ended by POST …/cancel', {
      field: 'status',
    });
  }
  for (const field of CANCEL_FIELDS) {
    if (request[field]) throw notAllowed(`${field}: use POST /subscriptions/{id}/cancel`, { field });
  }
  refuseUsed(request, ['parent_subscription_id']);
}

/** Of its lines that go on, also those that come later, each is measured. */
async function thresholdOf(
  subscription: SubscriptionModel,
  threshold: string | null,
  database: Transaction,
): Promise<string | null> {
  const lines = await SubscriptionLineItemModel.in(subscription, database)
    .where({ subscription_id: subscription.id, status: 'published' })
    .where((lives) => void lives.whereNull('end_date').orWhere('end_date', '>', subscription.current_period_start));
  const prices = lines.map(({ price_type }) => ({ type: price_type }));
  checkThreshold(threshold, prices, subscription.subscription_type);
  return keptThreshold(threshold);
}
