/**
 * Loads the published credit grants of subscriptions, oldest first: those of their plans, of their add-ons, and their own
 * (docs/rules/credits.md, "Who gets which"). A grant that a plan or add-on received after the subscription began does not apply to it.
 */

import { loadAll } from '../../storage/concurrency/batched.ts';
import type { CreditGrantModel } from '../../storage/models/catalog/credit-grant.ts';
import { CreditGrantApplicationModel } from '../../storage/models/credits/credit-grant-application.ts';
import { listReachingGrants } from '../../storage/models/credits/reaching-grants.ts';
import { AddonAssociationModel } from '../../storage/models/subscriptions/addon-association.ts';
import type { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import type { Context } from '../http/route.ts';

type GrantedSubscription = Pick<SubscriptionModel, 'id' | 'plan_id' | 'subscription_status'>;

/** Loads the grants by subscription id. The number of queries does not depend on the number of subscriptions. */
export async function loadGrantsBySubscription(
  subscriptions: readonly GrantedSubscription[],
  { scope, services, now }: Context,
): Promise<Map<string, CreditGrantModel[]>> {
  const { postgres } = services;
  const ids = subscriptions.map(({ id }) => id);
  const plan_ids = [...new Set(subscriptions.map(({ plan_id }) => plan_id))];
  const [attached, found] = await loadAll(postgres, [
    (connected) => AddonAssociationModel.listActive(scope, { subscription_ids: ids, at: now }, connected),
    (connected) => listReachingGrants(scope, { subscription_ids: ids, plan_ids }, connected),
  ]);
  const grants = OWNERS.flatMap((owner) => found.filter((grant) => grant[owner] !== null));
  if (grants.length === 0) return new Map(ids.map((id) => [id, []]));
  const begun = await CreditGrantApplicationModel.in(scope, postgres)
    .whereIn('subscription_id', ids)
    .distinct('credit_grant_id', 'subscription_id');
  return new Map(
    subscriptions.map((subscription) => [subscription.id, grants.filter(givenTo(subscription, { attached, begun }))]),
  );
}

/** Columns of the owner of a grant, which has exactly one, in the order of the answer. */
const OWNERS = ['plan_id', 'addon_id', 'subscription_id'] as const;

type StartedGrantApplication = Pick<CreditGrantApplicationModel, 'credit_grant_id' | 'subscription_id'>;

function givenTo(
  { id, plan_id, subscription_status }: GrantedSubscription,
  { attached, begun }: { attached: readonly AddonAssociationModel[]; begun: readonly StartedGrantApplication[] },
) {
  const addons = new Set(attached.filter(({ entity_id }) => entity_id === id).map(({ addon_id }) => addon_id));
  const has = new Set(begun.filter(({ subscription_id }) => subscription_id === id).map((one) => one.credit_grant_id));
  // A draft has no applications of grants yet. It receives the grants that exist when it begins, so all current ones are listed.
  const isGiven = (grant: CreditGrantModel) => subscription_status === 'draft' || has.has(grant.id);
  return (grant: CreditGrantModel) =>
    grant.subscription_id === id ||
    ((grant.plan_id === plan_id || (grant.addon_id !== null && addons.has(grant.addon_id))) && isGiven(grant));
}
