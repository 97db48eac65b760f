/**
 * An entitlement: a feature that a plan, an add-on or one subscription grants. The type of the feature decides which
 * values it may have (docs/rules/entitlements.md, "What each type grants").
 * The API sends `usage_limit` as a JSON number. It is stored as decimal text, and a value that a JSON number cannot
 * represent exactly is refused.
 */

import { z } from 'zod';
import { invalid } from '../../foundation/error.ts';
import { parseDecimal } from '../../foundation/money.ts';
import { anyCase, baseFields, decimalText, freeMap, optionalKey, timestampText } from '../../foundation/record.ts';
import { toInstant } from '../../foundation/time/instant.ts';
import { RECURRING_PERIODS } from '../../foundation/time/period.ts';
import { isAdditive, listAggregationTypes } from '../../metering/aggregations/list-types.ts';
import { FEATURE_TYPES } from '../feature/record.ts';
import { checkGrantTerms, grantShape, hasGrants } from './grant-record.ts';

const ENTITLEMENT_ENTITY_TYPES = ['PLAN', 'SUBSCRIPTION', 'ADDON'] as const;
export const USAGE_RESET_PERIODS = [...RECURRING_PERIODS, 'NEVER'] as const;
export type UsageResetPeriod = (typeof USAGE_RESET_PERIODS)[number];

/** Maximum digits of a limit. Sums of thousands of such limits, and their multiples, are exact as JSON numbers. */
const LIMIT_DIGITS_MAX = 12;
const usageLimit = decimalText
  .refine(isLimit, { error: `must be a whole number from 0 on, of at most ${LIMIT_DIGITS_MAX} digits` })
  .meta({ override: { type: ['number', 'string'], example: 1000 } });

export const entitlementShape = z.object({
  id: z.string(),
  entity_type: anyCase(ENTITLEMENT_ENTITY_TYPES).meta({
    description: 'Kind of owner: a plan, an add-on or a subscription.',
  }),
  entity_id: z.string().meta({ description: 'Plan, add-on or subscription that grants the feature.' }),
  feature_id: z.string().min(1).meta({ description: 'Feature that is granted.' }),
  feature_type: anyCase(FEATURE_TYPES).meta({ description: 'Type of the feature.' }),
  is_enabled: z.boolean().meta({
    description:
      'True if the feature is granted. A new entitlement is enabled, unless the feature is boolean and the request has false.',
  }),
  usage_limit: usageLimit.nullable().meta({
    description:
      'Units of a metered feature per reset period, a whole number of at most 12 digits. Null means unlimited.',
  }),
  usage_reset_period: anyCase(USAGE_RESET_PERIODS).nullable().meta({
    description: 'Period after which usage of a metered feature resets to 0. Null means the billing period.',
  }),
  is_soft_limit: z
    .boolean()
    .meta({ description: 'True if usage may exceed the limit. Events are counted even beyond a limit.' }),
  static_value: z
    .string()
    .max(5000)
    .nullable()
    .meta({ description: 'Value of a static feature, at most 5,000 characters.' }),
  config_value: freeMap.nullable().meta({ description: 'Values of a config feature, by key.' }),
  ...grantShape,
  display_order: z
    .int()
    .meta({ description: 'Position among the entitlements of the plan or add-on, for display only.' }),
  parent_entitlement_id: optionalKey.meta({
    description: 'Entitlement of the plan, or of an attached add-on, that this entitlement of a subscription replaces.',
  }),
  start_date: timestampText
    .nullable()
    .meta({ description: 'Instant from which the entitlement is granted. Null means at any time.' }),
  end_date: timestampText.nullable().meta({ description: 'Exclusive end; null without an end.' }),
  ...baseFields,
});
export type Entitlement = z.output<typeof entitlementShape>;

/** Fields that the rules of a single entitlement check. */
type EntitlementTerms = Pick<
  Entitlement,
  | 'feature_type'
  | 'usage_limit'
  | 'usage_reset_period'
  | 'is_soft_limit'
  | 'static_value'
  | 'config_value'
  | 'start_date'
  | 'end_date'
  | keyof typeof grantShape
>;

/** Only a boolean entitlement can be created disabled; any other can be disabled later. */
export function checkEnabled({ feature_type, is_enabled }: { feature_type: string; is_enabled: boolean | null }): void {
  if (is_enabled === false && feature_type !== 'boolean')
    throw invalid(
      'is_enabled',
      `a ${feature_type} feature is granted when its entitlement is made: switch it off by PUT`,
    );
}

/** Checks the values of an entitlement. A value that has no effect for the type of the feature is refused by name. */
export function checkEntitlement(granted: EntitlementTerms): void {
  const { feature_type: type, static_value, config_value, start_date, end_date } = granted;
  if (type === 'static' && !static_value?.trim()) throw invalid('static_value', 'is required for a static feature');
  if (type === 'config') checkConfig(config_value);
  const belongsTo = { metered: METERED, static: ['static_value'], config: ['config_value'], boolean: [] }[type];
  for (const field of [...METERED, 'static_value', 'config_value'] as const)
    if (granted[field] && !(belongsTo as readonly string[]).includes(field))
      throw invalid(field, `does not belong to a ${type} feature`);
  if (start_date && end_date && toInstant(end_date) <= toInstant(start_date))
    throw invalid('end_date', 'must be after start_date');
  checkGrantTerms(granted);
}

const METERED = [
  'usage_limit',
  'usage_reset_period',
  'is_soft_limit',
  ...(Object.keys(grantShape) as (keyof typeof grantShape)[]),
] as const;

function checkConfig(config: Entitlement['config_value']): void {
  const keys = Object.keys(config ?? {});
  if (keys.length === 0) throw invalid('config_value', 'is required for a config feature');
  if (keys.some((key) => key.trim() === '')) throw invalid('config_value', 'must not have a blank key');
}

/**
 * Refuses a meter whose buckets do not add up, such as their maxima: they have no sum to compare with a limit (docs/rules/entitlements.md,
 * "What each type grants").
 */
export function checkMeterOfEntitlement(aggregation: { type: string; bucket_size?: string | null | undefined }): void {
  if (aggregation.bucket_size && !isAdditive(aggregation))
    throw invalid(
      'feature_id',
      `a feature whose meter takes the ${aggregation.type} of each bucket cannot be granted with a limit`,
    );
}

/**
 * Checks the meter of usage-ordered grants: the order of units is known only for meters that add events up (docs/rules/entitlements.md,
 * "Grants").
 */
export function checkMeterOfGrants(granted: EntitlementTerms, { aggregation, reset_usage }: GrantedMeter): void {
  if (!hasGrants(granted)) return;
  if (!isAdditive(aggregation) || aggregation.bucket_size)
    throw invalid(
      'grant_quota',
      `is for a feature whose meter adds events up without buckets: of type ${ADDITIVE_TYPES.join(', ')}`,
    );
  if (reset_usage === 'NEVER') throw invalid('grant_quota', 'is for a meter whose usage begins again with each period');
}

type GrantedMeter = {
  readonly aggregation: { type: string; bucket_size?: string | null | undefined };
  readonly reset_usage: string;
};

const ADDITIVE_TYPES = listAggregationTypes(({ chain_rule }) => chain_rule === 'additive');

function isLimit(text: string): boolean {
  const limit = parseDecimal(text);
  return limit === undefined || (limit.isInteger() && limit.gte(0) && limit.precision(true) <= LIMIT_DIGITS_MAX);
}

/** Converts a limit to a JSON number, which is exact because a limit has at most 12 digits. */
export function toLimitNumber(limit: { toString(): string } | null): number | null {
  return limit === null ? null : Number(limit.toString());
}

/** An entitlement in webhooks, and in responses without its related records. */
export const publishedEntitlementShape = entitlementShape.extend({
  usage_limit: z.number().nullable().meta(entitlementShape.shape.usage_limit.meta()!),
  plan_id: z.string().nullable().meta({ description: 'Plan that grants the entitlement; null without one.' }),
});

export function toPublishedEntitlement<Source extends Entitlement>(entitlement: Source) {
  return {
    ...entitlement,
    usage_limit: toLimitNumber(entitlement.usage_limit),
    plan_id: entitlement.entity_type === 'PLAN' ? entitlement.entity_id : null,
  };
}
