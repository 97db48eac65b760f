/**
 * Loads the published credit grants of subscriptions, oldest first: those of their plans, of their add-ons, and their own
 * (docs/rules/credits.md, "Who gets which"). A grant that a plan or add-on received after the subscription began does not apply to it.
 */

import { CreditGrantModel } from '../../storage/models/catalog/credit-grant.ts';
import { CreditGrantApplicationModel } from '../../storage/models/credits/credit-grant-application.ts';
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
  const attached = await AddonAssociationModel.activeAt(scope, now, postgres).whereIn('entity_id', ids);
  const sellers = [
    ['plan_id', [...new Set(subscriptions.map(({ plan_id }) => plan_id))]],
    ['addon_id', [...new Set(attached.map(({ addon_id }) => addon_id))]],
    ['subscription_id', ids],
  ] as const;
  const grants: CreditGrantModel[] = [];
  for (const [giver, givers] of sellers)
    if (givers.length > 0)
      grants.push(...(await CreditGrantModel.buildPublishedQuery(scope, [giver, givers], postgres)));
  if (grants.length === 0) return new Map(ids.map((id) => [id, []]));
  const begun = await CreditGrantApplicationModel.in(scope, postgres)
    .whereIn('subscription_id', ids)
    .distinct('credit_grant_id', 'subscription_id');
  return new Map(
    subscriptions.map((subscription) => [subscription.id, grants.filter(givenTo(subscription, { attached, begun }))]),
  );
}

type StartedGrantApplication = Pick<CreditGrantApplicationModel, 'credit_grant_id' | 'subscription_id'>;

function givenTo(
  { id, plan_id, subscription_status }: GrantedSubscription,
  { attached, begun }: { attached: readonly AddonAssociationModel[]; begun: readonly StartedGrantApplication[] },
) {
  const addons = new Set(attached.filter(({ entity_id }) => entity_id === id).map(({ addon_id }) => addon_id));
  const has = new Set(begun.filter(({ subscription_id }) => subscription_id === id).map((one) => one.credit_grant_id));
  // A draft receives the grants that exist when it begins.
  const isGiven = (grant: CreditGrantModel) => subscription_status === 'draft' || has.has(grant.id);
  return (grant: CreditGrantModel) =>
    grant.subscription_id === id ||
    ((grant.plan_id === plan_id || (grant.addon_id !== null && addons.has(grant.addon_id))) && isGiven(grant));
}
