/**
 * Modifies a subscription by one of the types in modify/modifications.ts, or previews it with the same plan (docs/rules/subscriptions.md,
 * "Modifications"). The row of the subscription is locked first, so that a second modification sees the result of the first.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { type ModifyRequest, parseModification } from '../../../core/subscriptions/modification.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { emit } from '../../foundation/emit.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import type { ChangedResources } from '../modify/changed-resources.ts';
import type { PlanModification, PlannedModification } from '../modify/modification.ts';
import { MODIFICATIONS } from '../modify/modifications.ts';
import { lockUpToDate, readUpToDate } from './lock-with-parent.ts';
import { propagateToChildren } from './propagate-to-children.ts';

export type ModifySubscriptionInput = { readonly id: string; readonly request: ModifyRequest; readonly author: Author };
/**
 * Request to execute a modification. `version` is the subscription's version that the caller has read, if the request
 * names it.
 */
type ExecuteModificationInput = ModifySubscriptionInput & { readonly version?: number | null | undefined };
export type ModifiedSubscription = {
  readonly subscription: SubscriptionModel;
  readonly changed_resources: ChangedResources;
};

export async function previewModification(
  stores: Stores,
  scope: Scope,
  input: ModifySubscriptionInput,
): Promise<ModifiedSubscription> {
  const options = { scope, now: input.author.now, others: listNamedSubscriptions(input.request) };
  return readUpToDate(stores, input.id, options, async (database, subscription) => {
    const planned = await plan(stores, database, { ...input, subscription });
    return { subscription, changed_resources: planned.preview };
  });
}

export async function executeModification(
  stores: Stores,
  scope: Scope,
  input: ExecuteModificationInput,
): Promise<ModifiedSubscription> {
  const { id, version, author } = input;
  const others = listNamedSubscriptions(input.request);
  return runBillingTransaction(stores, async (transaction) => {
    const before = await lockUpToDate(stores, id, { scope, database: transaction, now: author.now, others, version });
    const planned = await plan(stores, transaction, { ...input, subscription: before });
    const by = { by: author, database: transaction };
    await SubscriptionModel.change(before, planned.changes, by);
    const changed_resources = await planned.apply(transaction);
    // The subscription is read again, because `apply` may have changed it.
    const subscription = await SubscriptionModel.fetch(scope, id, { database: transaction });
    await emit(transaction, 'subscription.updated', { record: subscription, by: author });
    await propagateToChildren(stores, transaction, { parent: subscription, by: author });
    return { subscription, changed_resources };
  });
}

/**
 * Lists the subscriptions that join or leave a group, and the parent of the group; all are locked before any change, in the order of
 * lock-in-order.ts.
 */
function listNamedSubscriptions({ grouped_invoicing_params: params }: ModifyRequest): string[] {
  return [params?.parent_subscription_id ?? [], params?.child_subscription_ids ?? []].flat();
}

function plan(
  stores: Stores,
  database: Database,
  { request, subscription, author }: ModifySubscriptionInput & { subscription: SubscriptionModel },
): Promise<PlannedModification> {
  const { type, params } = parseModification(request);
  const planType = MODIFICATIONS[type] as PlanModification;
  return planType({ stores, database, subscription, params, author });
}
