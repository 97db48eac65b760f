/**
 * An entitlement: what a plan, an add-on or one subscription grants of a feature. Which values belong to which type of
 * feature: docs/rules/entitlements.md, "What each type grants".
 *
 * On the wire `usage_limit` is a JSON number; we keep it as decimal text, and refuse what a JSON number could not say
 * exactly.
 */
import { z } from 'zod';
import { invalid } from '../error.ts';
import { FEATURE_TYPES } from '../feature/record.ts';
import { parseDecimal } from '../money.ts';
import { anyCase, baseFields, decimalText, freeMap, optionalKey, timestampText } from '../record.ts';
import { toInstant } from '../time/instant.ts';
import { RECURRING_PERIODS } from '../time/period.ts';
import { checkGrantTerms, grantShape, hasGrants } from './grant-record.ts';

export const ENTITLEMENT_ENTITY_TYPES = ['PLAN', 'SUBSCRIPTION', 'ADDON'] as const;
export const USAGE_RESET_PERIODS = [...RECURRING_PERIODS, 'NEVER'] as const;
export type UsageResetPeriod = (typeof USAGE_RESET_PERIODS)[number];

/** So few that sums of thousands of them, and their multiples, are exact as JSON numbers. */
const LIMIT_DIGITS_MAX = 12;
const usageLimit = decimalText
  .refine(isLimit, { error: `must be a whole number from 0 on, of at most ${LIMIT_DIGITS_MAX} digits` })
  .meta({ override: { type: ['number', 'string'], example: 1000 } });

export const entitlementShape = z.object({
  id: z.string(),
  entity_type: anyCase(ENTITLEMENT_ENTITY_TYPES).meta({ description: 'What grants it.' }),
  entity_id: z.string().meta({ description: 'The plan, add-on or subscription that grants it.' }),
  feature_id: z.string().min(1).meta({ description: 'The feature that is granted.' }),
  feature_type: anyCase(FEATURE_TYPES).meta({ description: 'The type of the feature.' }),
  is_enabled: z.boolean().meta({
    description: 'Whether it is granted. A new one is, unless the feature is boolean and the request says false.',
  }),
  usage_limit: usageLimit
    .nullable()
    .meta({ description: 'Units of a metered feature in each reset period; null is unlimited.' }),
  usage_reset_period: anyCase(USAGE_RESET_PERIODS).nullable().meta({
    description: 'How long usage of a metered feature adds up against the limit; null is the billing period.',
  }),
  is_soft_limit: z.boolean().meta({ description: 'Whether usage beyond the limit is meant to go on.' }),
  static_value: z.string().max(5000).nullable().meta({ description: 'The value of a static feature.' }),
  config_value: freeMap.nullable().meta({ description: 'The values of a config feature, by their keys.' }),
  ...grantShape,
  display_order: z
    .int()
    .meta({ description: 'Where it stands among those of its plan or add-on; nothing goes by it.' }),
  parent_entitlement_id: optionalKey.meta({
    description: 'Of a subscription: the entitlement of its plan, or of an add-on of it, that this one replaces.',
  }),
  start_date: timestampText.nullable().meta({ description: 'From when on it is granted; null is always.' }),
  end_date: timestampText.nullable().meta({ description: 'Until when, exclusive; null is open.' }),
  ...baseFields,
});
export type Entitlement = z.output<typeof entitlementShape>;

/** What is granted, and for which time: what the rules of one entitlement alone are about. */
export type EntitlementTerms = Pick<
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

/** What is made with a value is granted, and can be switched off later: a request that says otherwise is not done. */
export function checkEnabled({ feature_type, is_enabled }: { feature_type: string; is_enabled: boolean | null }): void {
  if (is_enabled === false && feature_type !== 'boolean')
    throw invalid(
      'is_enabled',
      `a ${feature_type} feature is granted when its entitlement is made: switch it off by PUT`,
    );
}

/** A value that its type of feature does not go by would be kept and never looked at: it is refused by name. */
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
 * The largest value of each bucket has no sum that a limit could be compared with (docs/rules/entitlements.md, "What each
 * type grants").
 */
export function checkMeterOfEntitlement(aggregation: { type: string; bucket_size?: string | null | undefined }): void {
  if (aggregation.type === 'MAX' && aggregation.bucket_size)
    throw invalid('feature_id', 'a feature whose meter takes the MAX of each bucket cannot be granted with a limit');
}

/** Which unit was used first is known of what adds up event by event (docs/rules/entitlements.md, "Grants"). */
export function checkMeterOfGrants(granted: EntitlementTerms, { aggregation, reset_usage }: GrantedMeter): void {
  if (!hasGrants(granted)) return;
  if (!ADDITIVE_AGGREGATIONS.has(aggregation.type) || aggregation.bucket_size)
    throw invalid(
      'grant_quota',
      'is for a feature whose meter adds events up: SUM, SUM_WITH_MULTIPLIER or COUNT, without buckets',
    );
  if (reset_usage === 'NEVER') throw invalid('grant_quota', 'is for a meter whose usage begins again with each period');
}

type GrantedMeter = {
  readonly aggregation: { type: string; bucket_size?: string | null | undefined };
  readonly reset_usage: string;
};
const ADDITIVE_AGGREGATIONS: ReadonlySet<string> = new Set(['SUM', 'SUM_WITH_MULTIPLIER', 'COUNT']);

function isLimit(text: string): boolean {
  const limit = parseDecimal(text);
  return limit === undefined || (limit.isInteger() && limit.gte(0) && limit.precision(true) <= LIMIT_DIGITS_MAX);
}

/** Its digits are few enough for a JSON number. */
export function toLimitNumber(limit: { toString(): string } | null): number | null {
  return limit === null ? null : Number(limit.toString());
}

/** An entitlement as it is told to others, and answered without the records that it names. */
export const publishedEntitlementShape = entitlementShape.extend({
  usage_limit: z.number().nullable().meta(entitlementShape.shape.usage_limit.meta()!),
  plan_id: z.string().nullable().meta({ description: 'The plan that grants it; null where none does.' }),
});

export function toPublishedEntitlement<Told extends Entitlement>(entitlement: Told) {
  return {
    ...entitlement,
    usage_limit: toLimitNumber(entitlement.usage_limit),
    plan_id: entitlement.entity_type === 'PLAN' ? entitlement.entity_id : null,
  };
}
