/** Requests and answers of entitlements. */
import { z } from 'zod';
import { NO_GRANTS } from '../../core/entitlement/grant-record.ts';
import { entitlementShape, publishedEntitlementShape } from '../../core/entitlement/record.ts';
import { invalid } from '../../core/error.ts';
import { featureShape } from '../../core/feature/record.ts';
import { orNull } from '../../core/record.ts';
import { AddonWithoutParts } from '../addons/answer.ts';
import { FeatureAnswer } from '../features/schema.ts';
import { flag, type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';
import { PlanWithoutParts } from '../plans/answer.ts';

const shape = entitlementShape.shape;
const described = <S extends z.ZodType>(of: S, as: z.ZodType) => of.meta(as.meta()!);

/** What a request states of the values; `null` and "" say that one is not set. */
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
      description: 'The plan that grants it: this, or `entity_type` and `entity_id`.',
    }),
    entity_type: orNull(shape.entity_type).meta({ description: 'PLAN, ADDON or SUBSCRIPTION, with `entity_id`.' }),
    entity_id: orNull(z.string()).meta(shape.entity_id.meta()!),
    feature_id: shape.feature_id,
    feature_type: shape.feature_type,
    is_enabled: orNull(z.boolean()).meta({
      description:
        'Of a boolean feature: false says that it is not granted. What has a value is granted when it is made, and false is refused.',
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

/** What grants it, said in one of two ways, or in both when they agree. */
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
    items: z.array(CreateEntitlement).min(1).max(100).meta({ description: 'All of them are made, or none.' }),
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

/** What is left out stays; null and "" clear. */
const cleared = <S extends z.ZodType>(of: S) =>
  described(
    z.preprocess((text) => (text === '' ? null : text), of),
    of,
  );

export const UpdateEntitlement = z
  .object({
    is_enabled: z.boolean().optional().meta({ description: 'Whether it is granted.' }),
    usage_limit: cleared(shape.usage_limit).optional(),
    usage_reset_period: cleared(shape.usage_reset_period).optional(),
    is_soft_limit: shape.is_soft_limit.optional(),
    static_value: shape.static_value.optional(),
    config_value: shape.config_value.optional(),
    clear_grant_config: z
      .boolean()
      .optional()
      .meta({ description: 'True takes all that is said of grants away: without a limit usage is unlimited then.' }),
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

/** Whoever clears the grants and states them has not said which. */
export function toEntitlementChanges({ clear_grant_config, ...changes }: UpdateEntitlement) {
  if (!clear_grant_config) return changes;
  for (const field of Object.keys(NO_GRANTS) as (keyof typeof NO_GRANTS)[])
    if (changes[field] !== undefined && changes[field] !== null)
      throw invalid(field, 'contradicts clear_grant_config: give one of them');
  return { ...changes, ...NO_GRANTS };
}

export const EntitlementFilter = listShape({
  entity_type: shape.entity_type.optional().meta({ description: 'Granted by plans, add-ons or subscriptions.' }),
  entity_ids: matchAny('plans, add-ons or subscriptions, which grant it'),
  feature_ids: matchAny('features'),
  feature_type: featureShape.shape.type.optional().meta({ description: 'To features of this type.' }),
  is_enabled: flag.optional().meta({ description: 'Only what is granted, or only what is not.' }),
  plan_ids: matchAny('plans, which grant it'),
  has_grant_config: flag.optional().meta({ description: 'Only what is granted bit by bit, or only what is not.' }),
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

/** The limit is a JSON number on the wire; its text is short enough to be exact as one. */
export const EntitlementAnswer = publishedEntitlementShape
  .extend({
    feature: FeatureAnswer.nullable().meta({ description: 'Where `expand` names it.' }),
    plan: PlanWithoutParts.nullable().meta({ description: 'Where `expand` names it.' }),
    addon: AddonWithoutParts.nullable().meta({ description: 'Where `expand` names it.' }),
  })
  .meta({ id: 'EntitlementResponse' });

export const EntitlementListAnswer = listAnswer(EntitlementAnswer, 'ListEntitlementsResponse');
export const BulkEntitlementAnswer = z
  .object({ items: z.array(EntitlementAnswer).meta({ description: 'In the order of the request.' }) })
  .meta({ id: 'CreateBulkEntitlementResponse' });

/** The published client reads the entitlements of a plan as a plan: its fields stand beside the list. */
export const PlanEntitlementsAnswer = PlanWithoutParts.extend(EntitlementListAnswer.shape).meta({
  id: 'PlanEntitlementsResponse',
});
