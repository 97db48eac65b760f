/**
 * Subscriptions of different customers on one invoice (docs/rules/subscriptions.md, "Families"). Each has its own line items. The parent's
 * invoice contains all of them, and their periods advance with the parent's.
 */
import { invalid, notFound } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Author } from '../../core/foundation/stamp.ts';
import { checkGroupable } from '../../core/subscriptions/hierarchy.ts';
import type { Database, Transaction } from '../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { SubscriptionScheduleModel } from '../../storage/models/subscriptions/subscription-schedule.ts';
import { emit } from '../foundation/emit.ts';

/** Locks the subscriptions in the order of their ids, which prevents deadlocks. */
export async function loadLockedSubscriptions(
  scope: Scope,
  ids: readonly string[],
  database: Database,
): Promise<SubscriptionModel[]> {
  const found = await SubscriptionModel.in(scope, database)
    .whereIn('id', [...ids])
    .where('status', 'published')
    .orderBy('id')
    .forUpdate();
  const byId = new Map(found.map((subscription) => [subscription.id, subscription]));
  return ids.map((id) => {
    const subscription = byId.get(id);
    if (!subscription) throw notFound('subscription', id);
    return subscription;
  });
}

type AddToGroupInput = {
  readonly parent: SubscriptionModel;
  readonly children: readonly SubscriptionModel[];
  readonly author: Author;
  readonly field: string;
};

/** Throws if these children may not be invoiced with the parent. */
export async function checkGroup(
  { parent, children, field }: Omit<AddToGroupInput, 'author'>,
  database: Database,
): Promise<void> {
  for (const child of children) checkGroupable(child, parent, field);
  await checkKeepPlans(parent, { subscriptions: children, field }, database);
  await checkKeepPlans(parent, { subscriptions: [parent], field: 'parent_subscription_id' }, database);
}

/** Checks that no plan change is scheduled: a hierarchy refuses a plan change, so it would fail at its instant. */
export async function checkKeepPlans(
  scope: Scope,
  { subscriptions, field }: { subscriptions: readonly SubscriptionModel[]; field: string },
  database: Database,
): Promise<void> {
  const ids = subscriptions.map(({ id }) => id);
  const [change] = await SubscriptionScheduleModel.in(scope, database)
    .whereIn('subscription_id', ids)
    .where({ schedule_type: 'plan_change', status: 'pending' })
    .limit(1);
  if (change)
    throw invalid(field, `a plan_change is scheduled for subscription ${change.subscription_id}: undo it first`, {
      schedule_id: change.id,
    });
}

/** Adds subscriptions to a group. `transaction` holds the locks on all of them. */
export async function addToGroup(
  { parent, children, author, field }: AddToGroupInput,
  transaction: Transaction,
): Promise<SubscriptionModel[]> {
  await checkGroup({ parent, children, field }, transaction);
  const changes = { subscription_type: 'grouped_invoicing' as const, parent_subscription_id: parent.id };
  return changeEach(children, changes, author, transaction);
}

/**
 * Removes children from a group. Afterwards each child is invoiced by itself, including the part of the running period that the parent's
 * invoices do not contain.
 */
export async function removeFromGroup(
  children: readonly SubscriptionModel[],
  author: Author | Pick<Author, 'now'>,
  transaction: Transaction,
): Promise<SubscriptionModel[]> {
  const changes = { subscription_type: 'STANDALONE' as const, parent_subscription_id: null };
  return changeEach(children, changes, author, transaction);
}

async function changeEach(
  subscriptions: readonly SubscriptionModel[],
  changes: Partial<SubscriptionModel>,
  by: Author | Pick<Author, 'now'>,
  transaction: Transaction,
): Promise<SubscriptionModel[]> {
  const changed: SubscriptionModel[] = [];
  for (const subscription of subscriptions) {
    const record = await SubscriptionModel.change(subscription, changes, { by, database: transaction });
    await emit(transaction, 'subscription.updated', { record, by });
    changed.push(record);
  }
  return changed;
}
