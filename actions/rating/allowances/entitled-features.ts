/**
 * Combines the entitlements of subscriptions by feature and reset period, with their sources
 * (docs/rules/entitlements.md, "How sources add up").
 */

import {
  type CombinedEntitlement,
  combineGrants,
  type EntitlementHolding,
  type EntitlementSource,
  listEntitlementSources,
} from '../../../core/catalog/entitlement/combine.ts';
import { hasGrants } from '../../../core/catalog/entitlement/grant-record.ts';
import { indexById } from '../../../core/foundation/by-id.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { deriveGrantGroup } from '../../../core/rating/allowances/grants.ts';
import { deriveResetPeriod } from '../../../core/rating/allowances/reset.ts';
import { listBatched, loadAll } from '../../../storage/concurrency/batched.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { toBatchKey } from '../../../storage/models/foundation/statements.ts';
import { AddonAssociationModel } from '../../../storage/models/subscriptions/addon-association.ts';
import { narrowToActiveAt, SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';

export type SubscriptionEntitlementSource = EntitlementSource & { subscription: SubscriptionModel };

export type EntitledFeature = {
  feature: FeatureModel;
  combined: CombinedEntitlement;
  /** Reset period of a metered feature; null for other features and for usage-ordered grants. */
  usage_reset_period: string | null;
  sources: SubscriptionEntitlementSource[];
  /** All sources of the feature, including those with other reset periods. */
  of_feature: readonly SubscriptionEntitlementSource[];
};

export type EntitlementReadContext = { readonly scope: Scope; readonly database: Database; readonly now: Date };

/**
 * Lists the active and trialing subscriptions of a customer. An inherited subscription is replaced by its parent, whose entitlements the
 * customer has (docs/rules/entitlements.md, "Who takes part in another's").
 */
export async function listGrantingSubscriptions(
  customer_id: string,
  subscription_ids: readonly string[] | undefined,
  reading: EntitlementReadContext,
): Promise<SubscriptionModel[]> {
  return replaceInherited(await listActiveSubscriptions(customer_id, subscription_ids, reading), reading);
}

function listActiveSubscriptions(
  customer_id: string,
  subscription_ids: readonly string[] | undefined,
  { scope, database, now }: EntitlementReadContext,
): Promise<SubscriptionModel[]> {
  const key = toBatchKey('granting', SubscriptionModel, scope.tenant_id, scope.environment_id, now, subscription_ids);
  const toCustomerId = (one: SubscriptionModel) => one.customer_id;
  return listBatched(
    database,
    { key, values: [customer_id], getKey: toCustomerId },
    async (customer_ids) =>
      await narrow(narrowToActiveAt(SubscriptionModel.in(scope, database), now.toISOString()), [
        ['customer_id', customer_ids],
        ['id', subscription_ids],
        ['status', 'published'],
        ['subscription_status', ['active', 'trialing']],
      ]).orderBy(['created_at', 'id']),
  );
}

/** Replaces each inherited subscription by its parent, if the parent grants something now. */
async function replaceInherited(
  subscriptions: readonly SubscriptionModel[],
  { scope, database, now }: EntitlementReadContext,
): Promise<SubscriptionModel[]> {
  const inherited = subscriptions.filter(isInherited);
  if (inherited.length === 0) return [...subscriptions];
  const ids = inherited.map(({ parent_subscription_id }) => parent_subscription_id);
  const parents = await SubscriptionModel.byId(scope, ids, database);
  return subscriptions.flatMap((one) => {
    if (!isInherited(one)) return [one];
    const parent = parents.get(one.parent_subscription_id!);
    return parent && isGranting(parent, now.getTime()) ? [parent] : [];
  });
}

function isInherited({ subscription_type }: SubscriptionModel): boolean {
  return subscription_type === 'INHERITED';
}

export async function listEntitledFeatures(
  subscriptions: readonly SubscriptionModel[],
  feature_ids: readonly string[] | undefined,
  reading: EntitlementReadContext,
): Promise<EntitledFeature[]> {
  const { sources, features } = await gatherSources(subscriptions, feature_ids, reading);
  return buildEntries(sources, features);
}

/** Lists the entitlements by subscription id, for subscriptions that grant something now. An inherited one has those of its parent. */
export async function listEntitledBySubscription(
  subscriptions: readonly SubscriptionModel[],
  reading: EntitlementReadContext,
): Promise<Map<string, EntitledFeature[]>> {
  const living = subscriptions.filter((subscription) => isGranting(subscription, reading.now.getTime()));
  const granting = indexById(await replaceInherited(living, reading));
  const { sources, features } = await gatherSources([...granting.values()], undefined, reading);
  const bySubscription = groupBy(sources, ({ subscription }) => subscription.id);
  return new Map(
    living.map((one) => {
      const subscriptionSources = bySubscription.get(isInherited(one) ? one.parent_subscription_id! : one.id);
      return [one.id, subscriptionSources ? buildEntries(subscriptionSources, features) : []];
    }),
  );
}

/** Applies the conditions of `listActiveSubscriptions` to a subscription that is already loaded. */
function isGranting(subscription: SubscriptionModel, now: Milliseconds): boolean {
  const { status, subscription_status, start_date, end_date } = subscription;
  const isLiving = subscription_status === 'active' || subscription_status === 'trialing';
  const isOver = Boolean(end_date) && toInstant(end_date!) <= now;
  return status === 'published' && isLiving && toInstant(start_date) <= now && !isOver;
}

async function gatherSources(
  subscriptions: readonly SubscriptionModel[],
  feature_ids: readonly string[] | undefined,
  reading: EntitlementReadContext,
) {
  const sources = await listSubscriptionSources(subscriptions, feature_ids, reading);
  const ids = sources.map(({ feature_id }) => feature_id);
  return { sources, features: await FeatureModel.byId(reading.scope, ids, reading.database) };
}

function buildEntries(
  sources: readonly SubscriptionEntitlementSource[],
  features: ReadonlyMap<string, FeatureModel>,
): EntitledFeature[] {
  const byFeature = groupBy(sources, ({ feature_id }) => feature_id);
  const entries = groupBy(sources, (source) => `${source.feature_id}/${toPeriodKey(source)}`);
  return [...entries.values()].map((of) => {
    const [first] = of;
    const { feature_id, feature_type, usage_reset_period, subscription } = first;
    const feature = features.get(feature_id);
    if (!feature) throw new FarthingError('system_error', `feature ${feature_id} of an entitlement does not exist`);
    const hasPeriod = feature_type === 'metered' && !hasGrants(first);
    const period = hasPeriod ? (usage_reset_period ?? subscription.billing_period) : null;
    const of_feature = byFeature.get(feature_id)!;
    const combined = combineGrants(feature_type, of, of_feature);
    return { feature, combined, usage_reset_period: period, sources: of, of_feature };
  });
}

/**
 * Builds the key of sources that add up: limits with one reset period, or grants of one group. A feature that is not metered has no period.
 */
function toPeriodKey(source: SubscriptionEntitlementSource): string {
  const { feature_type, usage_reset_period, subscription } = source;
  if (hasGrants(source)) return `grants of ${subscription.id}: ${deriveGrantGroup(source)}`;
  return feature_type === 'metered' ? deriveResetPeriod(usage_reset_period, subscription) : '';
}

/**
 * Lists all sources that entitle the subscriptions. A source that several subscriptions have is listed once for each.
 */
async function listSubscriptionSources(
  subscriptions: readonly SubscriptionModel[],
  feature_ids: readonly string[] | undefined,
  reading: EntitlementReadContext,
): Promise<SubscriptionEntitlementSource[]> {
  return listSourcesOfHoldings(subscriptions, await listHoldings(subscriptions, reading, { withNames: true }), {
    ...reading,
    feature_ids,
  });
}

/** Lists all sources of the given holdings: plans, add-ons and the subscriptions themselves. */
export async function listSourcesOfHoldings(
  subscriptions: readonly SubscriptionModel[],
  holdings: readonly EntitlementHolding[],
  {
    scope,
    database,
    now,
    feature_ids,
  }: EntitlementReadContext & { readonly feature_ids?: readonly string[] | undefined },
): Promise<SubscriptionEntitlementSource[]> {
  const entityIds = [...new Set(holdings.map(({ entity_id }) => entity_id))];
  const granted = await EntitlementModel.listPublished(scope, entityIds, database);
  const found = isAll(feature_ids) ? granted : granted.filter(({ feature_id }) => feature_ids.includes(feature_id));
  const subscriptionById = indexById(subscriptions);
  return listEntitlementSources(holdings, found, now.getTime()).map((source) => ({
    ...source,
    subscription: subscriptionById.get(source.subscription_id)!,
  }));
}

function isAll(ids: readonly string[] | undefined): ids is undefined {
  return ids === undefined || ids.length === 0;
}

/**
 * Lists the holdings of each subscription: its plan at that time, then its add-ons in the order of attachment, then itself. Without names,
 * their ids stand in place of them.
 */
export async function listHoldings(
  subscriptions: readonly SubscriptionModel[],
  { scope, database, now }: EntitlementReadContext,
  { withNames }: { withNames: boolean },
): Promise<EntitlementHolding[]> {
  const held = { subscription_ids: subscriptions.map(({ id }) => id), at: now };
  const [charged, attached] = await loadAll(database, [
    (connected) => SubscriptionLineItemModel.plansAt(scope, held, connected),
    (connected) => AddonAssociationModel.listActive(scope, held, connected),
  ]);
  const findPlanId = ({ id, plan_id }: SubscriptionModel) => charged.get(id) ?? plan_id;
  const plans = await PlanModel.byId(scope, withNames ? subscriptions.map(findPlanId) : [], database);
  const addons = await AddonModel.byId(scope, withNames ? attached.map(({ addon_id }) => addon_id) : [], database);
  return subscriptions.flatMap((subscription) => {
    const { id } = subscription;
    const plan_id = findPlanId(subscription);
    const plan_name = plans.get(plan_id)?.name ?? plan_id;
    const buildHolding = (
      entity_type: EntitlementHolding['entity_type'],
      entity_id: string,
      entity_name: string,
      quantity = 1,
    ) => ({
      subscription_id: id,
      entity_type,
      entity_id,
      entity_name,
      quantity,
    });
    const associations = attached.filter(({ entity_id }) => entity_id === id);
    return [
      buildHolding('plan', plan_id, plan_name),
      ...associations.map((one) =>
        buildHolding('addon', one.addon_id, addons.get(one.addon_id)?.name ?? one.addon_id, one.quantity),
      ),
      buildHolding('subscription', id, plan_name),
    ];
  });
}
