/**
 * Adds subscriptions to the invoice of a parent, or removes them (docs/rules/subscriptions.md, "Families"). The parent is the modified
 * subscription, or the one that the request of a child names.
 */
import { buildStateError, invalid } from '../../../core/foundation/error.ts';
import { checkDistinct } from '../../../core/subscriptions/hierarchy.ts';
import type { Subscription } from '../../../core/subscriptions/record.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { toScope } from '../../rating/billable-items.ts';
import { addToGroup, checkGroup, loadLockedSubscriptions, removeFromGroup } from '../../subscriptions/group.ts';
import { promoteToParent } from '../../subscriptions/inherited-subscriptions.ts';
import { toChangedSubscriptions } from './changed-resources.ts';
import type { ModifyInput, PlannedModification } from './modification.ts';

type GroupModificationInput = ModifyInput<'grouped_invoicing'>;
type GroupParts = { readonly parent: SubscriptionModel; readonly children: readonly SubscriptionModel[] };

const CHILDREN = 'grouped_invoicing_params.child_subscription_ids';
const ALONE = { subscription_type: 'STANDALONE', parent_subscription_id: null } as const;

export async function planGroupedInvoicing(input: GroupModificationInput): Promise<PlannedModification> {
  const parts = await loadGroupParts(input);
  switch (input.params.action) {
    case 'add':
      return planGroupAddition(input, parts);
    case 'remove':
      return planGroupRemoval(input, parts);
    default:
      throw invalid('grouped_invoicing_params.action', 'is required: add or remove');
  }
}

/**
 * Loads the parent and the requested children. A request for a parent names children; one for a child names the parent, and that child is
 * the only one.
 */
async function loadGroupParts({ stores, database, subscription, params }: GroupModificationInput): Promise<GroupParts> {
  const scope = toScope(subscription);
  const { parent_subscription_id, child_subscription_ids } = params;
  if (parent_subscription_id && parent_subscription_id !== subscription.id) {
    if (child_subscription_ids?.some((id) => id !== subscription.id))
      throw invalid(CHILDREN, `with another parent_subscription_id it is subscription ${subscription.id} alone`);
    const lock = database !== stores.postgres;
    const parent = await SubscriptionModel.fetch(scope, parent_subscription_id, { database, lock });
    return { parent, children: [subscription] };
  }
  if (!child_subscription_ids) throw invalid(CHILDREN, 'is required, or the parent_subscription_id of a child');
  checkDistinct(CHILDREN, child_subscription_ids);
  return { parent: subscription, children: await loadLockedSubscriptions(scope, child_subscription_ids, database) };
}

async function planGroupAddition(
  { subscription, database, author }: GroupModificationInput,
  { parent, children }: GroupParts,
): Promise<PlannedModification> {
  await checkGroup({ parent, children, field: CHILDREN }, database);
  const grouped = { subscription_type: 'grouped_invoicing', parent_subscription_id: parent.id } as const;
  const isParent = parent.id === subscription.id;
  const others = children.filter(({ id }) => id !== subscription.id);
  return {
    preview: toChangedSubscriptions(children.map((record) => ({ record, action: 'updated' as const }))),
    changes: isParent ? { subscription_type: 'PARENT' } : grouped,
    apply: async (transaction) => {
      if (!isParent) await promoteToParent(parent, author, transaction);
      const added = await addToGroup({ parent, children: others, author, field: CHILDREN }, transaction);
      return toUpdatedResources(isParent ? added : children);
    },
  };
}

function planGroupRemoval(
  { subscription, author }: GroupModificationInput,
  { parent, children }: GroupParts,
): PlannedModification {
  for (const child of children) {
    if (child.subscription_type !== 'grouped_invoicing' || child.parent_subscription_id !== parent.id)
      throw invalid(CHILDREN, `subscription ${child.id} is not invoiced with subscription ${parent.id}`);
    // Only the parent's next invoice will contain the last charges of a cancelled child.
    if (child.subscription_status === 'cancelled')
      throw buildStateError(
        CHILDREN,
        `subscription ${child.id} is cancelled: what it owes stands on the parent's next invoice`,
      );
  }
  const isParent = parent.id === subscription.id;
  return {
    preview: toUpdatedResources(children),
    changes: isParent ? {} : ALONE,
    apply: async (transaction: Transaction) =>
      toUpdatedResources(isParent ? await removeFromGroup(children, author, transaction) : children),
  };
}

function toUpdatedResources(children: readonly Subscription[]) {
  return toChangedSubscriptions(children.map((record) => ({ record, action: 'updated' as const })));
}
