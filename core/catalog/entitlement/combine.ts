/**
 * Combines all sources of a customer's feature (docs/rules/entitlements.md, "How sources add up"). Limits add up, times
 * the quantity of their add-on. A limit is soft if one source is soft. A boolean feature is on if one source enables
 * it. Static and config values are listed, each distinct value once. A disabled source grants nothing. Limits of different reset
 * periods are independent and are not added up. One source without a limit makes all of them unlimited.
 */
import { Decimal, sumDecimals } from '../../foundation/decimal.ts';
import { groupBy } from '../../foundation/group-by.ts';
import { type Milliseconds, toInstant } from '../../foundation/time/instant.ts';
import type { grantShape } from './grant-record.ts';
import type { Entitlement } from './record.ts';

export type EntitlementGrant = Pick<
  Entitlement,
  'is_enabled' | 'usage_limit' | 'is_soft_limit' | 'static_value' | 'config_value'
> & {
  /** Quota of each usage-ordered grant. */
  grant_quota?: Entitlement['grant_quota'];
  /** Number of attachments of the add-on; multiplies the limit. */
  quantity: number;
};

export type CombinedEntitlement = {
  is_enabled: boolean;
  is_soft_limit: boolean;
  /** Null if unlimited, or if the feature is not metered. */
  usage_limit: Decimal | null;
  static_values: string[];
  config_values: Record<string, unknown>[];
};

/**
 * Combines grants. `of_feature` contains all grants of the feature, also those with limits that are not added up. If an enabled
 * one of them is unlimited, the result is unlimited.
 */
export function combineGrants(
  feature_type: Entitlement['feature_type'],
  grants: readonly EntitlementGrant[],
  of_feature: readonly EntitlementGrant[] = grants,
): CombinedEntitlement {
  const enabled = grants.filter(isEnabled);
  const values = enabled.flatMap(({ static_value }) => (static_value === null ? [] : [static_value]));
  return {
    is_enabled: enabled.length > 0,
    is_soft_limit: enabled.some((grant) => grant.is_soft_limit),
    usage_limit: feature_type === 'metered' ? sumLimits(enabled, of_feature.filter(isEnabled)) : null,
    static_values: [...new Set(values)],
    config_values: listDistinct(enabled.flatMap(({ config_value }) => (config_value === null ? [] : [config_value]))),
  };
}

const isEnabled = (grant: EntitlementGrant) => grant.is_enabled;

/** Sums the limits. If no grant is enabled, the sum is 0, not unlimited. */
function sumLimits(grants: readonly EntitlementGrant[], of_feature: readonly EntitlementGrant[]): Decimal | null {
  if (grants.length > 0 && of_feature.some((grant) => toGrantLimit(grant) === null)) return null;
  return sumDecimals(grants.map((grant) => new Decimal(toGrantLimit(grant)!).times(String(grant.quantity))));
}

function toGrantLimit({ usage_limit, grant_quota }: EntitlementGrant): string | null {
  return usage_limit ?? grant_quota ?? null;
}

function listDistinct<Value>(values: readonly Value[]): Value[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

/** Owner of entitlements: the plan of a subscription, one of its add-ons, or the subscription itself. */
export type EntitlementHolding = {
  subscription_id: string;
  entity_type: 'plan' | 'addon' | 'subscription';
  entity_id: string;
  entity_name: string;
  quantity: number;
};

export type EntitlementSource = EntitlementHolding &
  EntitlementGrant &
  Pick<Entitlement, 'feature_id' | 'feature_type' | 'usage_reset_period' | keyof typeof grantShape> & {
    entitlement_id: string;
  };

/**
 * Lists the entitlements that are in force at `now`, once for each owner that grants them. An entitlement of a subscription replaces its
 * parent entitlement for all owners within that subscription.
 */
export function listEntitlementSources(
  holdings: readonly EntitlementHolding[],
  entitlements: readonly Entitlement[],
  now: Milliseconds,
): EntitlementSource[] {
  const inForce = entitlements.filter((entitlement) => isInForce(entitlement, now));
  const replaced = new Set(
    inForce.map(({ entity_id, parent_entitlement_id }) => `${entity_id}/${parent_entitlement_id}`),
  );
  const byEntity = groupBy(inForce, ({ entity_id }) => entity_id);
  return holdings.flatMap((holding) =>
    (byEntity.get(holding.entity_id) ?? [])
      .filter(({ id }) => !replaced.has(`${holding.subscription_id}/${id}`))
      .map((entitlement) => ({
        ...holding,
        entitlement_id: entitlement.id,
        feature_id: entitlement.feature_id,
        feature_type: entitlement.feature_type,
        is_enabled: entitlement.is_enabled,
        usage_limit: entitlement.usage_limit,
        is_soft_limit: entitlement.is_soft_limit,
        static_value: entitlement.static_value,
        config_value: entitlement.config_value,
        usage_reset_period: entitlement.usage_reset_period,
        grant_measure: entitlement.grant_measure,
        grant_quota: entitlement.grant_quota,
        grant_duration_value: entitlement.grant_duration_value,
        grant_duration_unit: entitlement.grant_duration_unit,
        grant_allocation_behavior: entitlement.grant_allocation_behavior,
        aggregation_mode: entitlement.aggregation_mode,
        alert_settings: entitlement.alert_settings,
      })),
  );
}

function isInForce({ start_date, end_date }: Entitlement, now: Milliseconds): boolean {
  return (start_date === null || toInstant(start_date) <= now) && (end_date === null || now < toInstant(end_date));
}
