/** Archives a feature and frees its lookup key; refused while an entitlement grants it (docs/rules/records.md, "Archiving"). */

import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { emit } from '../../foundation/emit.ts';

export async function archiveFeature(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; author: Author },
): Promise<void> {
  const { id, author } = request;
  await stores.postgres.transaction(async (database) => {
    const feature = await FeatureModel.fetchPublished(scope, id, { database, lock: true });
    const granting = await grantingEntity(scope, id, database);
    if (granting) throw notAllowed(`feature ${id} is granted by ${granting.entity_type} ${granting.entity_id}`);
    const archived = await FeatureModel.change(feature, { status: 'archived' }, { by: author, database });
    await emit(database, 'feature.deleted', { record: archived, by: author });
  });
}

/** Finds an entitlement that still grants the feature. An entitlement of a cancelled subscription remains, but grants nothing. */
async function grantingEntity(scope: Scope, feature_id: string, database: Database) {
  const grants = await EntitlementModel.in(scope, database).where({ feature_id, status: 'published' });
  const lasting = grants.find(({ entity_type }) => entity_type !== 'SUBSCRIPTION');
  if (lasting || grants.length === 0) return lasting;
  const [live] = await SubscriptionModel.in(scope, database)
    .whereIn(
      'id',
      grants.map(({ entity_id }) => entity_id),
    )
    .where('status', 'published')
    .whereNot('subscription_status', 'cancelled')
    .select('id')
    .limit(1);
  return grants.find(({ entity_id }) => entity_id === live?.id);
}
