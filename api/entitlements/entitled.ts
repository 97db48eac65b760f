/** What customers and subscriptions are entitled to, as it is answered. */
import { z } from 'zod';
import type { EntitledFeature, SubscriptionEntitlementSource } from '../../actions/entitlements/entitled-features.ts';
import type { FeatureUsage, UsageAgainstLimit } from '../../actions/entitlements/feature-usage.ts';
import { AGGREGATION_MODES, GRANT_MEASURES, hasGrants } from '../../core/entitlement/grant-record.ts';
import { entitlementShape, toLimitNumber, USAGE_RESET_PERIODS } from '../../core/entitlement/record.ts';
import { decimalText, timestampText } from '../../core/record.ts';
import { formatMs } from '../../core/time/instant.ts';
import { internValue } from '../../storage/cache/shared-value.ts';
import { showFeatures } from '../features/expand.ts';
import { FeatureAnswer } from '../features/schema.ts';
import type { Context } from '../http/route.ts';

const resetPeriod = z.enum(USAGE_RESET_PERIODS).nullable();
const configValue = z.record(z.string(), z.unknown());

const SourceAnswer = z
  .object({
    subscription_id: z.string().meta({ description: 'The subscription that has it.' }),
    entity_id: z.string().meta({ description: 'The plan, add-on or subscription that grants it.' }),
    entity_type: z.enum(['plan', 'addon', 'subscription']).meta({ description: 'What grants it.' }),
    entity_name: z.string().meta({ description: 'Its name; of a subscription, the name of its plan.' }),
    quantity: z.int().meta({ description: 'How often it is held: of an add-on its quantity, else 1.' }),
    entitlement_id: z.string().meta({ description: 'The entitlement itself.' }),
    is_enabled: z.boolean().meta({ description: 'Whether it is granted; else it adds nothing.' }),
    usage_limit: z.number().nullable().meta({ description: 'The limit of one, before `quantity`; null is unlimited.' }),
    static_value: z.string().nullable().meta({ description: 'The value of a static feature.' }),
    usage_reset_period: resetPeriod.meta({
      description: 'Of a metered feature; where none is stated, the billing period.',
    }),
    config_value: configValue.nullable().meta({ description: 'The values of a config feature.' }),
  })
  .meta({ id: 'EntitlementSource' });

const shape = entitlementShape.shape;
const BucketAnswer = z
  .object({
    entitlement_id: z.string().meta({ description: 'The entitlement that grants it.' }),
    source_entity_id: z.string().meta({ description: 'The plan, add-on or subscription that grants it.' }),
    usage_limit: z.number().nullable().meta({ description: 'Null: its quota is the limit.' }),
    grant_measure: shape.grant_measure,
    grant_quota: shape.grant_quota,
    grant_duration_value: shape.grant_duration_value,
    grant_duration_unit: shape.grant_duration_unit,
  })
  .meta({ id: 'AggregatedEntitlementBucket' });

const feature = FeatureAnswer.meta({ description: 'The feature, with its meter.' });
const sources = z.array(SourceAnswer).meta({ description: 'Where it comes from, one by one.' });

export const EntitledFeatureAnswer = z
  .object({
    feature,
    entitlement: z
      .object({
        is_enabled: z.boolean().meta({ description: 'Whether one of the sources grants it.' }),
        is_soft_limit: z
          .boolean()
          .meta({ description: 'Whether one of them says that usage beyond the limit goes on.' }),
        usage_limit: z.number().nullable().meta({
          description:
            'All limits together, times their quantities; of what is granted bit by bit, what one grant of each is together. Null is unlimited, or not metered, or grants of money.',
        }),
        usage_reset_period: resetPeriod.meta({ description: 'Of a metered feature.' }),
        static_values: z.array(z.string()).meta({ description: 'Of a static feature: the values, equal ones once.' }),
        config_values: z.array(configValue).meta({ description: 'Of a config feature: the values, equal ones once.' }),
        aggregation_mode: z.enum(AGGREGATION_MODES).nullable().meta({
          description: 'Of what is granted bit by bit: whether its sources add up, or this one holds beside others.',
        }),
        buckets: z.array(BucketAnswer).meta({ description: 'What is granted bit by bit, source by source.' }),
      })
      .meta({ id: 'AggregatedEntitlement', description: 'All sources together.' }),
    sources,
  })
  .meta({ id: 'AggregatedFeature' });

const entitled = z
  .array(EntitledFeatureAnswer)
  .meta({ description: 'An entry per feature; of a metered one, per reset period, and per grants that add up.' });

export const CustomerEntitlementsAnswer = z
  .object({ customer_id: z.string().meta({ description: 'The customer who may use it.' }), features: entitled })
  .meta({ id: 'CustomerEntitlementsResponse' });
export const SubscriptionEntitlementsAnswer = z
  .object({
    subscription_id: z.string().meta({ description: 'The subscription that grants it.' }),
    plan_id: z.string().meta({ description: 'Its plan.' }),
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
    grant_measure: z.enum(GRANT_MEASURES).meta({ description: 'Units of the meter, or money that its usage costs.' }),
    grant_quota: decimalText.meta({ description: 'How much a grant makes free, all sources together.' }),
    used: decimalText.meta({ description: 'What was drawn from it.' }),
    grant_status: z.enum(['active', 'exhausted']).meta({ description: 'Whether something of it is left.' }),
    valid_from: timestampText
      .nullable()
      .meta({ description: 'Since when it lasts; null where the next usage opens it.' }),
    valid_to: timestampText
      .nullable()
      .meta({ description: 'Until when, exclusive; null where the next usage opens it.' }),
  })
  .meta({ id: 'EntitlementGrant' });

const FeatureUsageAnswer = z
  .object({
    feature,
    total_limit: z.number().nullable().meta({
      description: 'All limits together; null is unlimited. Money, as the usage is, where grants are of an amount.',
    }),
    is_unlimited: z.boolean().meta({ description: 'Whether there is no limit.' }),
    current_usage: decimalText.meta({ description: 'Units since usage began again from 0.' }),
    usage_percent: decimalText.meta({ description: 'Usage × 100 / limit, to two places; 0 where it is unlimited.' }),
    is_enabled: z.boolean().meta({ description: 'Whether one of the sources grants it.' }),
    is_soft_limit: z.boolean().meta({ description: 'Whether one of them says that usage beyond the limit goes on.' }),
    next_usage_reset_at: timestampText
      .nullable()
      .meta({ description: 'When usage begins again from 0; null is never.' }),
    grants: z.array(GrantAnswer).nullable().meta({
      description: 'What is granted bit by bit, grants of one length together; null of any other limit.',
    }),
    sources,
  })
  .meta({ id: 'FeatureUsageSummary' });

export const CustomerUsageAnswer = z
  .object({
    customer_id: z.string().meta({ description: 'The customer who uses.' }),
    features: z
      .array(FeatureUsageAnswer)
      .meta({ description: 'An entry per metered feature and stretch of time in which its usage adds up.' }),
    period: z
      .object({
        start_time: timestampText.meta({ description: 'The start of the running billing period.' }),
        end_time: timestampText.meta({ description: 'Its end, which is not in it.' }),
        period: z.string().meta({ description: 'How long it is, such as MONTHLY.' }),
      })
      .nullable()
      .meta({ description: 'Of the subscription; null where there are several with periods of their own, or none.' }),
    pagination: z.null().meta({ description: 'All are answered at once.' }),
    as_of: timestampText.meta({ description: 'All usage that was accepted before this instant is in it.' }),
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

/** What of it grows with usage. */
export function showUsed({ used, usage_percent }: UsageAgainstLimit) {
  return { current_usage: used, usage_percent };
}
