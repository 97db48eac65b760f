/**
 * Creates entitlements of plans, add-ons and subscriptions, all or none. Entity and feature must exist, and a plan or add-on grants a
 * feature once (docs/rules/entitlements.md, "What can grant").
 */
import type { grantShape } from '../../../core/catalog/entitlement/grant-record.ts';
import {
  checkEnabled,
  checkEntitlement,
  checkMeterOfEntitlement,
  checkMeterOfGrants,
  type Entitlement,
} from '../../../core/catalog/entitlement/record.ts';
import { alreadyExists, invalid, notAllowed, notFound, prefixIndex } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { AddonAssociationModel } from '../../../storage/models/subscriptions/addon-association.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { emitEntitlementChanges } from './emit-entitlement.ts';

type NewEntitlement = Pick<
  Entitlement,
  | 'entity_type'
  | 'entity_id'
  | 'feature_id'
  | 'feature_type'
  | 'usage_limit'
  | 'usage_reset_period'
  | 'is_soft_limit'
  | 'static_value'
  | 'config_value'
  | 'parent_entitlement_id'
  | 'start_date'
  | 'end_date'
  | keyof typeof grantShape
> & { is_enabled: boolean | null };

type EntitlementWriteContext = { readonly scope: Scope; readonly database: Transaction; readonly author: Author };

export async function createEntitlement(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { request, author }: { request: NewEntitlement; author: Author },
): Promise<EntitlementModel> {
  return stores.postgres.transaction((database) => addEntitlement(request, { scope, database, author }));
}

/** One error rejects the batch and names the index of its entry. */
export async function createEntitlements(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { requests, author }: { requests: readonly NewEntitlement[]; author: Author },
): Promise<EntitlementModel[]> {
  return stores.postgres.transaction(async (database) => {
    const made: EntitlementModel[] = [];
    for (const [index, request] of requests.entries()) {
      try {
        made.push(await addEntitlement(request, { scope, database, author }));
      } catch (error) {
        throw prefixIndex(error, index);
      }
    }
    return made;
  });
}

async function addEntitlement(request: NewEntitlement, writing: EntitlementWriteContext): Promise<EntitlementModel> {
  const { scope, database, author } = writing;
  checkEntitlement(request);
  checkEnabled(request);
  await checkEntitledFeature(request, writing);
  await checkEntitledEntity(request, writing);
  const record = {
    id: newId('entitlement', author.now.getTime()),
    ...request,
    // A created entitlement is enabled; only a boolean feature may be created disabled.
    is_enabled: request.feature_type === 'boolean' ? (request.is_enabled ?? true) : true,
    ...createdBy(author),
  };
  const made = await EntitlementModel.add(scope, record, { database, conflict: formatConflict(request) });
  await emitEntitlementChanges(database, 'created', { entitlements: [made], by: author });
  return made;
}

const formatConflict = ({ entity_type, entity_id, feature_id }: NewEntitlement) =>
  `${entity_type} ${entity_id} has an entitlement to feature ${feature_id} already`;

/** Locks the feature, so that it is not archived meanwhile. */
async function checkEntitledFeature(request: NewEntitlement, writing: EntitlementWriteContext): Promise<void> {
  const { feature_id, feature_type } = request;
  const { scope, database } = writing;
  const feature = await FeatureModel.fetchPublished(scope, feature_id, { database, lock: true });
  if (feature.type !== feature_type) throw invalid('feature_type', `feature ${feature_id} is ${feature.type}`);
  if (feature.meter_id === null) return;
  const meter = await MeterModel.fetch(scope, feature.meter_id, { database });
  checkMeterOfEntitlement(meter.aggregation);
  checkMeterOfGrants(request, meter);
}

async function checkEntitledEntity(request: NewEntitlement, writing: EntitlementWriteContext): Promise<void> {
  const { scope, database } = writing;
  const { entity_type, entity_id, parent_entitlement_id } = request;
  if (entity_type === 'SUBSCRIPTION') return checkOverride(request, writing);
  if (parent_entitlement_id)
    throw invalid('parent_entitlement_id', 'is for the entitlements of a SUBSCRIPTION, which replace one of its plan');
  const locked = { database, lock: true };
  const entity =
    entity_type === 'PLAN'
      ? await PlanModel.fetch(scope, entity_id, locked)
      : await AddonModel.fetch(scope, entity_id, locked);
  if (entity.status !== 'published') throw notFound(entity_type === 'PLAN' ? 'plan' : 'add-on', entity_id);
}

async function checkOverride(request: NewEntitlement, writing: EntitlementWriteContext): Promise<void> {
  const { scope, database } = writing;
  const { entity_id, feature_id, parent_entitlement_id } = request;
  const subscription = await SubscriptionModel.fetchPublished(scope, entity_id, { database, lock: true });
  if (subscription.subscription_status === 'cancelled') throw notAllowed(`subscription ${entity_id} is cancelled`);
  if (parent_entitlement_id) await checkParent(request, subscription, writing);
  const [other] = await narrow(EntitlementModel.in(scope, database), [
    ['entity_id', entity_id],
    ['feature_id', feature_id],
    ['status', 'published'],
    ['end_date', 'open at', request.start_date ?? LONG_AGO],
  ])
    .where({ parent_entitlement_id })
    .where((begins) => void begins.whereNull('start_date').orWhere('start_date', '<', request.end_date ?? 'infinity'))
    .select('id')
    .limit(1);
  if (other) throw alreadyExists(`${formatConflict(request)}, for the same time`);
}

/** An instant before any record was created. */
const LONG_AGO = '-infinity';

/** Checks the replaced entitlement: it belongs to the subscription's plan or to an attached add-on, and to the same feature. */
async function checkParent(
  request: NewEntitlement,
  subscription: SubscriptionModel,
  writing: EntitlementWriteContext,
): Promise<void> {
  const { scope, database, author } = writing;
  const { feature_id, parent_entitlement_id: id } = request;
  const parent = await EntitlementModel.fetchPublished(scope, id!, { database });
  if (parent.feature_id !== feature_id)
    throw invalid('parent_entitlement_id', `entitlement ${id} is to another feature, ${parent.feature_id}`);
  if (parent.entity_id === subscription.plan_id) return;
  const [attached] = await AddonAssociationModel.notEnded(scope, author.now, database)
    .where({ entity_id: subscription.id, addon_id: parent.entity_id })
    .select('id')
    .limit(1);
  if (!attached)
    throw invalid('parent_entitlement_id', `is not of the plan of subscription ${subscription.id} or of its add-ons`);
}
