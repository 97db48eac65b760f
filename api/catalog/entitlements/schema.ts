/** Requests and answers of entitlements. */
import { z } from 'zod';
import { NO_GRANTS } from '../../../core/catalog/entitlement/grant-record.ts';
import { entitlementShape, publishedEntitlementShape } from '../../../core/catalog/entitlement/record.ts';
import { featureShape } from '../../../core/catalog/feature/record.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { orNull } from '../../../core/foundation/record.ts';
import { flag, type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';
import { AddonWithoutParts } from '../addons/answer.ts';
import { FeatureAnswer } from '../features/schema.ts';
import { PlanWithoutParts } from '../plans/answer.ts';

const shape = entitlementShape.shape;
const described = <S extends z.ZodType>(of: S, as: z.ZodType) => of.meta(as.meta()!);

/** Values in a request. `null` and "" mean that a value is not set. */
const values = {
  usage_limit: described(orNull(shape.usage_limit.unwrap()), shape.usage_limit),
  usage_reset_period: described(orNull(shape.usage_reset_period.unwrap()), shape.usage_reset_period),
  is_soft_limit: described(
    shape.is_soft_limit
      .nullish()
      .transform((soft) => soft ?? false)
      .pipe(z.boolean()),
    shape.is_soft_limit,
  ),
  static_value: described(orNull(shape.static_value.unwrap()), shape.static_value),
  config_value: described(orNull(shape.config_value.unwrap()), shape.config_value),
  grant_measure: described(orNull(shape.grant_measure.unwrap()), shape.grant_measure),
  grant_quota: described(orNull(shape.grant_quota.unwrap()), shape.grant_quota),
  grant_duration_value: described(orNull(shape.grant_duration_value.unwrap()), shape.grant_duration_value),
  grant_duration_unit: described(orNull(shape.grant_duration_unit.unwrap()), shape.grant_duration_unit),
  grant_allocation_behavior: described(
    orNull(shape.grant_allocation_behavior.unwrap()),
    shape.grant_allocation_behavior,
  ),
  aggregation_mode: described(orNull(shape.aggregation_mode.unwrap()), shape.aggregation_mode),
  alert_settings: described(orNull(shape.alert_settings.unwrap()), shape.alert_settings),
};

export const CreateEntitlement = z
  .object({
    plan_id: orNull(z.string()).meta({
      description: 'Plan that grants the feature. An alternative to `entity_type` and `entity_id`.',
    }),
    entity_type: orNull(shape.entity_type).meta({
      description: 'Type of the owner: PLAN, ADDON or SUBSCRIPTION. It requires `entity_id`.',
    }),
    entity_id: orNull(z.string()).meta(shape.entity_id.meta()!),
    feature_id: shape.feature_id,
    feature_type: shape.feature_type,
    is_enabled: orNull(z.boolean()).meta({
      description: 'False denies a boolean feature; for other types it is refused. Default: true.',
    }),
    ...values,
    parent_entitlement_id: described(shape.parent_entitlement_id.default(null), shape.parent_entitlement_id),
    start_date: described(orNull(shape.start_date.unwrap()), shape.start_date),
    end_date: described(orNull(shape.end_date.unwrap()), shape.end_date),
  })
  .meta({
    id: 'CreateEntitlementRequest',
    example: {
      plan_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
      feature_id: 'feat_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
      feature_type: 'metered',
      usage_limit: 1000,
      usage_reset_period: 'MONTHLY',
    },
  });
export type CreateEntitlement = z.output<typeof CreateEntitlement>;

/** Accepts the owner as `plan_id`, as `entity_type` and `entity_id`, or in both forms if they agree. */
export function toEntitlementInput({ plan_id, entity_type, entity_id, ...fields }: CreateEntitlement) {
  if (plan_id && ((entity_type && entity_type !== 'PLAN') || (entity_id && entity_id !== plan_id)))
    throw invalid('plan_id', 'contradicts entity_type and entity_id: give one of them');
  const type = plan_id ? ('PLAN' as const) : entity_type;
  const id = plan_id ?? entity_id;
  if (!type) throw invalid('entity_type', 'is required without plan_id');
  if (!id) throw invalid('entity_id', 'is required without plan_id');
  return { ...fields, entity_type: type, entity_id: id };
}

export const CreateBulkEntitlement = z
  .object({
    items: z
      .array(CreateEntitlement)
      .min(1)
      .max(100)
      .meta({ description: 'Entitlements to create, 1 to 100. All are created, or none.' }),
  })
  .meta({
    id: 'CreateBulkEntitlementRequest',
    example: {
      items: [
        {
          entity_type: 'ADDON',
          entity_id: 'addon_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
          feature_id: 'feat_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
          feature_type: 'metered',
          usage_limit: 500,
          usage_reset_period: 'MONTHLY',
        },
      ],
    },
  });

/** An absent field does not change; null and "" clear it. */
const cleared = <S extends z.ZodType>(of: S) =>
  described(
    z.preprocess((text) => (text === '' ? null : text), of),
    of,
  );

export const UpdateEntitlement = z
  .object({
    is_enabled: z.boolean().optional().meta({ description: 'True if the feature is granted.' }),
    usage_limit: cleared(shape.usage_limit).optional(),
    usage_reset_period: cleared(shape.usage_reset_period).optional(),
    is_soft_limit: shape.is_soft_limit.optional(),
    static_value: shape.static_value.optional(),
    config_value: shape.config_value.optional(),
    clear_grant_config: z.boolean().optional().meta({
      description:
        'True to remove all terms of grants. After that, usage without a limit is unlimited. Default: false.',
    }),
    grant_measure: cleared(shape.grant_measure).optional(),
    grant_quota: cleared(shape.grant_quota).optional(),
    grant_duration_value: cleared(shape.grant_duration_value).optional(),
    grant_duration_unit: cleared(shape.grant_duration_unit).optional(),
    grant_allocation_behavior: cleared(shape.grant_allocation_behavior).optional(),
    aggregation_mode: cleared(shape.aggregation_mode).optional(),
    alert_settings: cleared(shape.alert_settings).optional(),
  })
  .meta({ id: 'UpdateEntitlementRequest', example: { usage_limit: 2000, is_soft_limit: true } });
type UpdateEntitlement = z.output<typeof UpdateEntitlement>;

/** Converts a request to changes. A request that clears the terms of grants and sets them is contradictory, so it is refused. */
export function toEntitlementChanges({ clear_grant_config, ...changes }: UpdateEntitlement) {
  if (!clear_grant_config) return changes;
  for (const field of Object.keys(NO_GRANTS) as (keyof typeof NO_GRANTS)[])
    if (changes[field] !== undefined && changes[field] !== null)
      throw invalid(field, 'contradicts clear_grant_config: give one of them');
  return { ...changes, ...NO_GRANTS };
}

export const EntitlementFilter = listShape({
  entity_type: shape.entity_type.optional().meta({ description: 'Type of the owner: plan, add-on or subscription.' }),
  entity_ids: matchAny('plans, add-ons or subscriptions'),
  feature_ids: matchAny('features'),
  feature_type: featureShape.shape.type.optional().meta({ description: 'Type of the feature.' }),
  is_enabled: flag.optional().meta({ description: 'True for enabled entitlements, false for disabled ones.' }),
  plan_ids: matchAny('plans'),
  has_grant_config: flag
    .optional()
    .meta({ description: 'True for entitlements with usage-ordered grants, false for those without.' }),
}).meta({ id: 'EntitlementFilter', example: { plan_ids: ['plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X'], expand: ['features'] } });
export type EntitlementFilter = z.output<typeof EntitlementFilter>;

export const entitlementGrammar: ListGrammar = {
  columns: {
    id: 'string',
    entity_type: 'string',
    entity_id: 'string',
    feature_id: 'string',
    feature_type: 'string',
    is_enabled: 'boolean',
    usage_limit: 'number',
    usage_reset_period: 'string',
    is_soft_limit: 'boolean',
    static_value: 'string',
    display_order: 'number',
    grant_measure: 'string',
    grant_quota: 'number',
    grant_duration_value: 'number',
    grant_duration_unit: 'string',
    grant_allocation_behavior: 'string',
    aggregation_mode: 'string',
    parent_entitlement_id: 'string',
    start_date: 'date',
    end_date: 'date',
    status: 'string',
    created_at: 'date',
    updated_at: 'date',
    created_by: 'string',
    updated_by: 'string',
  },
  expand: ['features', 'meters', 'plans', 'addons'],
};

/** The limit is a JSON number. Its text is short, so the number is exact. */
export const EntitlementAnswer = publishedEntitlementShape
  .extend({
    feature: FeatureAnswer.nullable().meta({ description: 'Feature, if `expand` names it; null otherwise.' }),
    plan: PlanWithoutParts.nullable().meta({ description: 'Plan, if `expand` names it; null otherwise.' }),
    addon: AddonWithoutParts.nullable().meta({ description: 'Add-on, if `expand` names it; null otherwise.' }),
  })
  .meta({ id: 'EntitlementResponse' });

export const EntitlementListAnswer = listAnswer(EntitlementAnswer, 'ListEntitlementsResponse');
export const BulkEntitlementAnswer = z
  .object({ items: z.array(EntitlementAnswer).meta({ description: 'Entitlements in the order of the request.' }) })
  .meta({ id: 'CreateBulkEntitlementResponse' });

/** The published client expects the fields of the plan beside the list of its entitlements. */
export const PlanEntitlementsAnswer = PlanWithoutParts.extend(EntitlementListAnswer.shape).meta({
  id: 'PlanEntitlementsResponse',
});
