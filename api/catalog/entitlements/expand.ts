/** Builds the answers of entitlements, with the records that `expand` names. */

import { toPublishedEntitlement } from '../../../core/catalog/entitlement/record.ts';
import { indexById } from '../../../core/foundation/by-id.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import type { Context } from '../../http/route.ts';
import { showFeatures } from '../features/expand.ts';

export async function showEntitlements(
  entitlements: readonly EntitlementModel[],
  expand: readonly string[],
  context: Context,
) {
  const { scope, services } = context;
  const collectIds = (part: string, id: (one: EntitlementModel) => string) =>
    expand.includes(part) ? entitlements.map(id) : [];
  const withFeatures = expand.includes('features') || expand.includes('meters');
  const featureIds = withFeatures ? entitlements.map(({ feature_id }) => feature_id) : [];
  const features = await FeatureModel.byId(scope, featureIds, services.postgres);
  const shown = indexById(
    await showFeatures([...features.values()], expand.includes('meters') ? ['meters'] : [], context),
  );
  const plans = await PlanModel.byId(
    scope,
    collectIds('plans', ({ entity_id }) => entity_id),
    services.postgres,
  );
  const addons = await AddonModel.byId(
    scope,
    collectIds('addons', ({ entity_id }) => entity_id),
    services.postgres,
  );
  return entitlements.map((entitlement) => ({
    ...toPublishedEntitlement(entitlement),
    feature: shown.get(entitlement.feature_id) ?? null,
    plan: plans.get(entitlement.entity_id) ?? null,
    addon: addons.get(entitlement.entity_id) ?? null,
  }));
}

export async function showEntitlement(entitlement: EntitlementModel, context: Context) {
  const [shown] = await showEntitlements([entitlement], ['features', 'meters', 'plans', 'addons'], context);
  return shown!;
}

/** Loads the entitlements of plans or add-ons by their ids, for the field `entitlements` of their answers. */
export async function loadEntitlementsByEntity(
  entity_ids: readonly string[],
  expand: readonly string[],
  context: Context,
) {
  const found = await EntitlementModel.buildPublishedQuery(context.scope, entity_ids, context.services.postgres);
  return groupBy(await showEntitlements(found, expand, context), ({ entity_id }) => entity_id);
}
