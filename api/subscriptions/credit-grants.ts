/**
 * The credit grants that subscriptions get, published ones, oldest first: those of their plans, of the add-ons that they have,
 * and their own (docs/rules/credits.md, "Whose grant it is").
 */
import { AddonAssociationModel } from '../../storage/models/addon-association.ts';
import { CreditGrantModel } from '../../storage/models/credit-grant.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Context } from '../http/route.ts';

type Getter = Pick<SubscriptionModel, 'id' | 'plan_id'>;

/** The grants of each, by its id; a few questions, however many subscriptions. */
export async function grantsOf(
  subscriptions: readonly Getter[],
  { scope, services, now }: Context,
): Promise<Map<string, CreditGrantModel[]>> {
  const { postgres } = services;
  const ids = subscriptions.map(({ id }) => id);
  const attached = await AddonAssociationModel.heldAt(scope, now, postgres).whereIn('entity_id', ids);
  const sellers = [
    ['plan_id', [...new Set(subscriptions.map(({ plan_id }) => plan_id))]],
    ['addon_id', [...new Set(attached.map(({ addon_id }) => addon_id))]],
    ['subscription_id', ids],
  ] as const;
  const grants: CreditGrantModel[] = [];
  for (const [giver, givers] of sellers)
    if (givers.length > 0) grants.push(...(await CreditGrantModel.publishedOf(scope, [giver, givers], postgres)));
  return new Map(
    subscriptions.map((subscription) => [subscription.id, grants.filter(givenTo(subscription, attached))]),
  );
}

function givenTo({ id, plan_id }: Getter, attached: readonly AddonAssociationModel[]) {
  const addons = new Set(attached.filter(({ entity_id }) => entity_id === id).map(({ addon_id }) => addon_id));
  return (grant: CreditGrantModel) =>
    grant.subscription_id === id ||
    grant.plan_id === plan_id ||
    (grant.addon_id !== null && addons.has(grant.addon_id));
}
