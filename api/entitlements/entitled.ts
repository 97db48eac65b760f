/** What customers and subscriptions are entitled to, as it is answered. */
import { z } from 'zod';
import type { EntitledFeature, HeldSource } from '../../actions/entitlements/entitled-features.ts';
import type { FeatureUsage, Used } from '../../actions/entitlements/limited-usage.ts';
import { limitNumber, USAGE_RESET_PERIODS } from '../../core/entitlement/record.ts';
import { decimalText, timestampText } from '../../core/record.ts';
import { formatMs } from '../../core/time/instant.ts';
import { sharedValue } from '../../storage/kept/shared-value.ts';
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
          description: 'All limits together, times their quantities; null is unlimited, or not metered.',
        }),
        usage_reset_period: resetPeriod.meta({ description: 'Of a metered feature.' }),
        static_values: z.array(z.string()).meta({ description: 'Of a static feature: the values, equal ones once.' }),
        config_values: z.array(configValue).meta({ description: 'Of a config feature: the values, equal ones once.' }),
      })
      .meta({ id: 'AggregatedEntitlement', description: 'All sources together.' }),
    sources,
  })
  .meta({ id: 'AggregatedFeature' });

const entitled = z
  .array(EntitledFeatureAnswer)
  .meta({ description: 'An entry per feature; of a metered one, per reset period.' });

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
    feature: sharedValue(features[index]),
    entitlement: { ...combined, usage_limit: limitNumber(combined.usage_limit), usage_reset_period },
    sources: entry.sources.map(showSource),
  }));
}

function showSource({ subscription, ...source }: HeldSource) {
  const period = source.usage_reset_period ?? (source.feature_type === 'metered' ? subscription.billing_period : null);
  return { ...source, usage_limit: limitNumber(source.usage_limit), usage_reset_period: period };
}

const FeatureUsageAnswer = z
  .object({
    feature,
    total_limit: z.number().nullable().meta({ description: 'All limits together; null is unlimited.' }),
    is_unlimited: z.boolean().meta({ description: 'Whether there is no limit.' }),
    current_usage: decimalText.meta({ description: 'Units since usage began again from 0.' }),
    usage_percent: decimalText.meta({ description: 'Usage × 100 / limit, to two places; 0 where it is unlimited.' }),
    is_enabled: z.boolean().meta({ description: 'Whether one of the sources grants it.' }),
    is_soft_limit: z.boolean().meta({ description: 'Whether one of them says that usage beyond the limit goes on.' }),
    next_usage_reset_at: timestampText
      .nullable()
      .meta({ description: 'When usage begins again from 0; null is never.' }),
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
  return usages.map(({ combined, window, ...usage }, index) => ({
    feature: sharedValue(features[index]),
    total_limit: limitNumber(combined.usage_limit),
    is_unlimited: combined.usage_limit === null,
    ...showUsed(usage),
    is_enabled: combined.is_enabled,
    is_soft_limit: combined.is_soft_limit,
    next_usage_reset_at: window.end === null ? null : formatMs(window.end),
    sources: usage.sources.map(showSource),
  }));
}

/** What of it grows with usage. */
export function showUsed({ used, usage_percent }: Used) {
  return { current_usage: used, usage_percent };
}
