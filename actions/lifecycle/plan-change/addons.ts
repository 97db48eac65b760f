/** Add-ons of a subscription in a plan change: those that continue, and those that the change detaches. */

import {
  type AddonPolicy,
  checkPolicy,
  deriveAddonBehaviour,
  type EntityBehaviour,
} from '../../../core/catalog/addon/policy.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { formatMs, type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { checkResets } from '../../../core/subscriptions/attachment.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { AddonAssociationModel } from '../../../storage/models/subscriptions/addon-association.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';

/**
 * Checks the add-ons that continue after the change. If the target plan and one of them limit the same feature, their reset periods must be
 * equal, as when an add-on is attached.
 */
export async function checkCarried(
  database: Database,
  {
    subscription,
    carried,
    target_plan_id,
    length,
  }: {
    subscription: SubscriptionModel;
    carried: readonly AddonAssociationModel[];
    target_plan_id: string;
    length: Pick<SubscriptionModel, 'billing_period' | 'billing_period_count'>;
  },
): Promise<void> {
  const addonIds = carried.map(({ addon_id }) => addon_id);
  if (addonIds.length === 0) return;
  const granted = await EntitlementModel.buildPublishedQuery(subscription, [target_plan_id, ...addonIds], database);
  const [ofPlan, ofAddons] = [
    granted.filter(isOfEntity(target_plan_id)),
    granted.filter((one) => !isOfEntity(target_plan_id)(one)),
  ];
  checkResets(ofPlan, ofAddons, length, 'target_plan_id');
}

const isOfEntity =
  (id: string) =>
  ({ entity_id }: EntitlementModel): boolean =>
    entity_id === id;

export type AddonsOfChange = {
  readonly carried: readonly AddonAssociationModel[];
  readonly dropped: readonly AddonAssociationModel[];
};

/**
 * Gathers the add-ons that have not ended when the plan changes. Executing a scheduled change does not check its add-on policy again,
 * because an add-on that it names may have been detached since.
 */
export async function gatherAddons(
  database: Database,
  { subscription, policy, at, isScheduled }: GatherAddonsInput,
): Promise<AddonsOfChange> {
  const attached = await AddonAssociationModel.notEnded(subscription, new Date(at), database)
    .where('entity_id', subscription.id)
    .orderBy(['created_at', 'id']);
  if (!isScheduled) checkPolicy(attached, policy);
  const those = (wanted: EntityBehaviour) => attached.filter((one) => deriveAddonBehaviour(one, policy) === wanted);
  return { carried: those('carry'), dropped: those('drop') };
}

type GatherAddonsInput = {
  subscription: SubscriptionModel;
  policy: AddonPolicy | null | undefined;
  at: Milliseconds;
  /** True if the change was scheduled earlier and is executed now. */
  isScheduled: boolean;
};

/** Ends the associations of dropped add-ons; their lines end with the lines of the plan. One that would start later is never active. */
export async function detachDropped(
  database: Database,
  { dropped, at, author }: Pick<AddonsOfChange, 'dropped'> & { at: Milliseconds; author: Author },
): Promise<void> {
  const now = author.now.toISOString();
  for (const association of dropped) {
    const changes = {
      end_date: formatMs(Math.max(at, toInstant(association.start_date))),
      cancelled_at: now,
      cancellation_reason: 'the plan was changed',
      addon_status: 'cancelled' as const,
    };
    await AddonAssociationModel.change(association, changes, { by: author, database });
  }
}
