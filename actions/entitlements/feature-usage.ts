/** What was used of a metered feature in the stretch of time in which its usage adds up. */
import type { Decimal } from '../../core/decimal.ts';
import type { CombinedEntitlement } from '../../core/entitlement/combine.ts';
import type { GrantMeasure, GrantState } from '../../core/entitlement/grants.ts';
import type { ResetWindow } from '../../core/entitlement/reset.ts';
import { computeUsagePercent } from '../../core/entitlement/usage-percent.ts';
import type { FeatureModel } from '../../storage/models/feature.ts';
import type { EntitledFeature, EntitlementReadContext, SubscriptionEntitlementSource } from './entitled-features.ts';

export type FeatureUsageQuery = { entitled: readonly EntitledFeature[]; reading: EntitlementReadContext };

export type UsageAgainstLimit = { used: Decimal; usage_percent: Decimal };

export type FeatureUsage = UsageAgainstLimit & {
  feature: FeatureModel;
  combined: CombinedEntitlement;
  window: ResetWindow;
  sources: SubscriptionEntitlementSource[];
  /** Its meter is a level, whose usage is its integral over the length of the billing period. */
  is_level?: boolean;
  /** Of what is granted bit by bit. */
  granted?: {
    readonly measure: GrantMeasure;
    readonly grants: readonly GrantState[];
    /** What so many units more would use of it. */
    worth(units: Decimal): Decimal;
  };
};

/** For whoever decides by it what may be used: where in the log, partition by partition (exclusive), and in time the count ends. */
export type FeatureUsageSnapshot = FeatureUsage & { high_water: Readonly<Record<string, string>>; as_of: string };

export function toLimitUsage(used: Decimal, limit: Decimal | null): UsageAgainstLimit {
  return { used, usage_percent: computeUsagePercent(used, limit) };
}
