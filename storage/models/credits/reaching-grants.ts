/** Finds the credit grants that reach subscriptions. */
import { raw } from 'objection';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { CreditGrantModel } from '../catalog/credit-grant.ts';
import { prepareQuery } from '../foundation/prepared.ts';
import { AddonAssociationModel } from '../subscriptions/addon-association.ts';

/** All published grants of subscriptions: those of their plans, their own, and those of every add-on that they ever had. */
export async function listReachingGrants(
  scope: Scope,
  { subscription_ids, plan_ids }: { subscription_ids: readonly string[]; plan_ids: readonly string[] },
  database: Database,
): Promise<CreditGrantModel[]> {
  const addons = AddonAssociationModel.in(scope, database).whereIn('entity_id', subscription_ids).select('addon_id');
  const reaching = CreditGrantModel.in(scope, database)
    .where('status', 'published')
    .where((given) => {
      void given
        .whereIn('plan_id', plan_ids)
        .orWhere((own) => void own.whereIn('subscription_id', [...subscription_ids]))
        // A list, so that the condition can use an index; a subquery could not.
        .orWhere(raw('addon_id = any(array(?))', [addons as never]) as never);
    })
    .orderBy(['created_at', 'id']);
  return await prepareQuery(reaching);
}
