/** Finds the credit grants that reach a subscription. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { CreditGrantModel } from '../catalog/credit-grant.ts';
import { AddonAssociationModel } from '../subscriptions/addon-association.ts';

/** All published grants of a subscription: those of its plan, its own, and those of every add-on that it ever had. */
export async function listReachingGrants(
  scope: Scope,
  { subscription_id, plan_id }: { subscription_id: string; plan_id: string },
  database: Database,
): Promise<CreditGrantModel[]> {
  const addons = AddonAssociationModel.in(scope, database).where('entity_id', subscription_id).select('addon_id');
  return await CreditGrantModel.in(scope, database)
    .where('status', 'published')
    .where((given) => {
      void given
        .where({ plan_id })
        .orWhere({ subscription_id })
        .orWhereIn('addon_id', addons as never);
    })
    .orderBy(['created_at', 'id']);
}
