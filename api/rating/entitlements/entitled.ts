/** Answers about the entitlements of customers and subscriptions, and the usage against them. */
import { z } from 'zod';
import type {
  EntitledFeature,
  SubscriptionEntitlementSource,
} from '../../../actions/rating/allowances/entitled-features.ts';
import type { FeatureUsage, UsageAgainstLimit } from '../../../actions/rating/entitlements/feature-usage.ts';
import { AGGREGATION_MODES, GRANT_MEASURES, hasGrants } from '../../../core/catalog/entitlement/grant-record.ts';
import { entitlementShape, toLimitNumber, USAGE_RESET_PERIODS } from '../../../core/catalog/entitlement/record.ts';
import { decimalText, timestampText } from '../../../core/foundation/record.ts';
import { formatMs } from '../../../core/foundation/time/instant.ts';
import { internValue } from '../../../storage/cache/shared-value.ts';
import { showFeatures } from '../../catalog/features/expand.ts';
import { FeatureAnswer } from '../../catalog/features/schema.ts';
import type { Context } from '../../http/route.ts';

const resetPeriod = z.enum(USAGE_RESET_PERIODS).nullable();
const configValue = z.record(z.string(), z.unknown());

const SourceAnswer = z
  .object({
    subscription_id: z.string().meta({ description: 'Subscription that has the entitlement.' }),
    entity_id: z.string().meta({ description: 'Plan, add-on or subscription that grants the feature.' }),
    entity_type: z
      .enum(['plan', 'addon', 'subscription'])
      .meta({ description: 'Type of the entity that grants the feature.' }),
    entity_name: z
      .string()
      .meta({ description: 'Name of the entity that grants the feature; for a subscription, the name of its plan.' }),
    quantity: z.int().meta({ description: 'Multiplier of the entitlement: the quantity of an add-on, else 1.' }),
    entitlement_id: z.string().meta({ description: 'Id of the entitlement.' }),
    is_enabled: z
      .boolean()
      .meta({ description: 'True if the entitlement is enabled. A disabled entitlement adds nothing.' }),
    usage_limit: z
      .number()
      .nullable()
      .meta({ description: 'Limit before it is multiplied by `quantity`; null means unlimited.' }),
    static_value: z.string().nullable().meta({ description: 'Value of a static feature.' }),
    usage_reset_period: resetPeriod.meta({
      description: 'Reset period of a metered feature. Default: the billing period.',
    }),
    config_value: configValue.nullable().meta({ description: 'Values of a config feature, by key.' }),
  })
  .meta({ id: 'EntitlementSource' });

const shape = entitlementShape.shape;
const BucketAnswer = z
  .object({
    entitlement_id: z.string().meta({ description: 'Id of the entitlement.' }),
    source_entity_id: z.string().meta({ description: 'Plan, add-on or subscription that grants the feature.' }),
    usage_limit: z.number().nullable().meta({ description: 'Always null, because the quota is the limit.' }),
    grant_measure: shape.grant_measure,
    grant_quota: shape.grant_quota,
    grant_duration_value: shape.grant_duration_value,
    grant_duration_unit: shape.grant_duration_unit,
  })
  .meta({ id: 'AggregatedEntitlementBucket' });

const feature = FeatureAnswer.meta({ description: 'Feature with its meter.' });
const sources = z.array(SourceAnswer).meta({ description: 'Sources of the entitlement, each with its own values.' });

export const EntitledFeatureAnswer = z
  .object({
    feature,
    entitlement: z
      .object({
        is_enabled: z.boolean().meta({ description: 'True if one of the sources grants the feature.' }),
        is_soft_limit: z
          .boolean()
          .meta({ description: 'True if usage may exceed the limit according to one of the sources.' }),
        usage_limit: z.number().nullable().meta({
          description:
            'Sum of the limits, times their quantities; for usage-ordered grants, the sum of their quotas. Null if usage is unlimited, the feature is not metered, or the quotas are money.',
        }),
        usage_reset_period: resetPeriod.meta({ description: 'Reset period of a metered feature; null otherwise.' }),
        static_values: z
          .array(z.string())
          .meta({ description: 'Values of a static feature; each different value is listed once.' }),
        config_values: z
          .array(configValue)
          .meta({ description: 'Values of a config feature; each different value is listed once.' }),
        aggregation_mode: z.enum(AGGREGATION_MODES).nullable().meta({
          description:
            'Mode of usage-ordered grants: the sources add up (additive), or this grant is independent of the others (parallel). Null without grants.',
        }),
        buckets: z.array(BucketAnswer).meta({ description: 'Terms of usage-ordered grants, by source.' }),
      })
      .meta({ id: 'AggregatedEntitlement', description: 'Combination of all sources.' }),
    sources,
  })
  .meta({ id: 'AggregatedFeature' });

const entitled = z.array(EntitledFeatureAnswer).meta({
  description:
    'Entries per feature. A metered feature has one entry per reset period, one for all additive grants, and one per parallel grant.',
});

export const CustomerEntitlementsAnswer = z
  .object({ customer_id: z.string().meta({ description: 'Id of the customer.' }), features: entitled })
  .meta({ id: 'CustomerEntitlementsResponse' });
export const SubscriptionEntitlementsAnswer = z
  .object({
    subscription_id: z.string().meta({ description: 'Id of the subscription.' }),
    plan_id: z.string().meta({ description: 'Plan of the subscription.' }),
    features: entitled,
  })
  .meta({ id: 'SubscriptionEntitlementsResponse' });

export async function showEntitled(entitledFeatures: readonly EntitledFeature[], context: Context) {
  const features = await showFeatures(
    entitledFeatures.map((entry) => entry.feature),
    ['meters'],
    context,
  );
  return entitledFeatures.map(({ combined, usage_reset_period, ...entry }, index) => ({
    feature: internValue(features[index]),
    entitlement: {
      ...combined,
      usage_limit: entry.sources[0]!.grant_measure === 'amount' ? null : toLimitNumber(combined.usage_limit),
      usage_reset_period,
      ...showGranted(entry.sources.filter(hasGrants)),
    },
    sources: entry.sources.map(showSource),
  }));
}

function showGranted(sources: readonly SubscriptionEntitlementSource[]) {
  const [first] = sources;
  return {
    aggregation_mode: first ? (first.aggregation_mode ?? 'additive') : null,
    buckets: sources.map(({ entity_id, ...source }) => ({ ...source, source_entity_id: entity_id, usage_limit: null })),
  };
}

function showSource({ subscription, ...source }: SubscriptionEntitlementSource) {
  const isLimited = source.feature_type === 'metered' && !hasGrants(source);
  const period = source.usage_reset_period ?? (isLimited ? subscription.billing_period : null);
  return { ...source, usage_limit: toLimitNumber(source.usage_limit), usage_reset_period: period };
}

const GrantAnswer = z
  .object({
    grant_measure: z
      .enum(GRANT_MEASURES)
      .meta({ description: 'Measure of the quota: units of the meter, or money that its usage costs.' }),
    grant_quota: decimalText.meta({ description: 'Free usage per grant, of all sources together.' }),
    used: decimalText.meta({ description: 'Used part of the quota.' }),
    grant_status: z
      .enum(['active', 'exhausted'])
      .meta({ description: 'Status: active while some of the quota is left, else exhausted.' }),
    valid_from: timestampText.nullable().meta({ description: 'Start of the grant; null if the next usage opens it.' }),
    valid_to: timestampText
      .nullable()
      .meta({ description: 'Exclusive end of the grant; null if the next usage opens it.' }),
  })
  .meta({ id: 'EntitlementGrant' });

const FeatureUsageAnswer = z
  .object({
    feature,
    total_limit: z.number().nullable().meta({
      description:
        'Sum of the limits; null means unlimited. For grants with the measure `amount` it is money, like the usage.',
    }),
    is_unlimited: z.boolean().meta({ description: 'True if there is no limit.' }),
    current_usage: decimalText.meta({ description: 'Usage since the last reset.' }),
    usage_percent: decimalText.meta({ description: 'Usage × 100 / limit, rounded to two places; 0 if unlimited.' }),
    is_enabled: z.boolean().meta({ description: 'True if one of the sources grants the feature.' }),
    is_soft_limit: z
      .boolean()
      .meta({ description: 'True if usage may exceed the limit according to one of the sources.' }),
    next_usage_reset_at: timestampText
      .nullable()
      .meta({ description: 'Time of the next reset of usage to 0; null means never.' }),
    grants: z.array(GrantAnswer).nullable().meta({
      description: 'Usage-ordered grants, one entry per duration with the sum of all sources; null without grants.',
    }),
    sources,
  })
  .meta({ id: 'FeatureUsageSummary' });

export const CustomerUsageAnswer = z
  .object({
    customer_id: z.string().meta({ description: 'Id of the customer.' }),
    features: z
      .array(FeatureUsageAnswer)
      .meta({ description: 'One entry for each metered feature and each interval over which its usage adds up.' }),
    period: z
      .object({
        start_time: timestampText.meta({ description: 'Start of the running billing period.' }),
        end_time: timestampText.meta({ description: 'Exclusive end of the period.' }),
        period: z.string().meta({ description: 'Length of the period, such as MONTHLY.' }),
      })
      .nullable()
      .meta({
        description: 'Billing period of the subscriptions; null if their periods differ, or without subscriptions.',
      }),
    pagination: z.null().meta({ description: 'Always null, because all features are returned.' }),
    as_of: timestampText.meta({ description: 'Instant before which all accepted usage is included.' }),
  })
  .meta({ id: 'CustomerUsageSummaryResponse' });

export async function showLimitedUsage(usages: readonly FeatureUsage[], context: Context) {
  const features = await showFeatures(
    usages.map((usage) => usage.feature),
    ['meters'],
    context,
  );
  return usages.map(({ combined, window, granted, ...usage }, index) => ({
    feature: internValue(features[index]),
    total_limit: toLimitNumber(combined.usage_limit),
    is_unlimited: combined.usage_limit === null,
    ...showUsed(usage),
    is_enabled: combined.is_enabled,
    is_soft_limit: combined.is_soft_limit,
    next_usage_reset_at: window.end === null ? null : formatMs(window.end),
    grants: granted ? showGrants(granted) : null,
    sources: usage.sources.map(showSource),
  }));
}

function showGrants({ measure, grants }: NonNullable<FeatureUsage['granted']>) {
  return grants.map(({ quota, used, window }) => ({
    grant_measure: measure,
    grant_quota: quota,
    used,
    grant_status: used.lt(quota) ? ('active' as const) : ('exhausted' as const),
    valid_from: window && formatMs(window.start),
    valid_to: window && formatMs(window.end),
  }));
}

/** Fields that change with usage. */
export function showUsed({ used, usage_percent }: UsageAgainstLimit) {
  return { current_usage: used, usage_percent };
}
