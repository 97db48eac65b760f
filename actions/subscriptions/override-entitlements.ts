/** Writes the entitlements of a new subscription that replace those of its plan. */
import { type OverrideEntitlement, planEntitlementOverrides } from '../../core/catalog/entitlement/override.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../core/foundation/stamp.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { EntitlementModel } from '../../storage/models/catalog/entitlement.ts';
import type { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { emitEntitlementChanges } from '../catalog/entitlements/emit-entitlement.ts';

export async function overrideEntitlements(
  subscription: SubscriptionModel,
  overrides: readonly OverrideEntitlement[],
  { scope, database, author }: { scope: Scope; database: Transaction; author: Author },
): Promise<void> {
  if (overrides.length === 0) return;
  const ofPlan = await EntitlementModel.buildPublishedQuery(scope, [subscription.plan_id], database);
  const given = planEntitlementOverrides(overrides, ofPlan, subscription.id);
  const records = given.map((one) => ({
    ...one,
    ...createdBy(author),
    id: newId('entitlement', author.now.getTime()),
  }));
  const entitlements = await EntitlementModel.addAll(scope, records, { database });
  await emitEntitlementChanges(database, 'created', { entitlements, by: author });
}
