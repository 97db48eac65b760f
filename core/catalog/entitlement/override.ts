/**
 * Entitlements that a new subscription replaces (docs/rules/entitlements.md, "What can grant"). Each is an entitlement
 * of the subscription that names the replaced one and takes its values for fields that the request omits.
 */
import { z } from 'zod';
import { invalid, prefixField } from '../../foundation/error.ts';
import { freeMap, orNull } from '../../foundation/record.ts';
import { checkEntitlement, type Entitlement, entitlementShape } from './record.ts';

const DEFAULT_NOTE = 'Default: the value of the replaced entitlement.';

export const overrideEntitlementShape = z.object({
  entitlement_id: z.string().min(1).meta({ description: 'Entitlement of the plan. Each entitlement is named once.' }),
  usage_limit: orNull(entitlementShape.shape.usage_limit).meta({
    description: `Units of a metered feature in each reset period. ${DEFAULT_NOTE}`,
  }),
  is_enabled: orNull(z.boolean()).meta({ description: `Whether the feature is granted. ${DEFAULT_NOTE}` }),
  static_value: orNull(z.string().max(5000)).meta({ description: `Value of a static feature. ${DEFAULT_NOTE}` }),
  config_value: orNull(freeMap).meta({ description: `Values of a config feature, by key. ${DEFAULT_NOTE}` }),
});
export type OverrideEntitlement = z.output<typeof overrideEntitlementShape>;

type EntitlementOverrideFields = Omit<Entitlement, 'id' | 'tenant_id' | 'environment_id' | 'status' | AuditStampField>;
type AuditStampField = 'created_at' | 'updated_at' | 'created_by' | 'updated_by';

export function planEntitlementOverrides(
  overrides: readonly OverrideEntitlement[],
  plan_entitlements: readonly Entitlement[],
  subscription_id: string,
): EntitlementOverrideFields[] {
  const seen = new Set<string>();
  return overrides.map((override, index) => {
    const field = `override_entitlements[${index}]`;
    const { entitlement_id } = override;
    const parent = plan_entitlements.find(({ id }) => id === entitlement_id);
    if (!parent) throw invalid(`${field}.entitlement_id`, `${entitlement_id} is not an entitlement of the plan`);
    if (seen.has(entitlement_id)) throw invalid(`${field}.entitlement_id`, 'is overridden twice');
    seen.add(entitlement_id);
    const given = buildOverride(parent, override, subscription_id);
    try {
      checkEntitlement(given);
    } catch (error) {
      throw prefixField(error, field);
    }
    return given;
  });
}

function buildOverride(
  parent: Entitlement,
  override: OverrideEntitlement,
  subscription_id: string,
): EntitlementOverrideFields {
  return {
    entity_type: 'SUBSCRIPTION',
    entity_id: subscription_id,
    feature_id: parent.feature_id,
    feature_type: parent.feature_type,
    is_enabled: override.is_enabled ?? parent.is_enabled,
    usage_limit: override.usage_limit ?? parent.usage_limit,
    usage_reset_period: parent.usage_reset_period,
    is_soft_limit: parent.is_soft_limit,
    static_value: override.static_value ?? parent.static_value,
    config_value: override.config_value ?? parent.config_value,
    grant_measure: parent.grant_measure,
    grant_quota: parent.grant_quota,
    grant_duration_value: parent.grant_duration_value,
    grant_duration_unit: parent.grant_duration_unit,
    grant_allocation_behavior: parent.grant_allocation_behavior,
    aggregation_mode: parent.aggregation_mode,
    alert_settings: parent.alert_settings,
    display_order: parent.display_order,
    parent_entitlement_id: parent.id,
    start_date: null,
    end_date: null,
  };
}
