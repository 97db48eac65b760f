/** Usage of a metered feature in its reset window. */

import type { CombinedEntitlement } from '../../../core/catalog/entitlement/combine.ts';
import type { Decimal } from '../../../core/foundation/decimal.ts';
import type { GrantMeasure, GrantState } from '../../../core/rating/allowances/grants.ts';
import type { ResetWindow } from '../../../core/rating/allowances/reset.ts';
import { computeUsagePercent } from '../../../core/rating/allowances/usage-percent.ts';
import type { UnitValuation } from '../../../core/rating/valued-usage.ts';
import type { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import type {
  EntitledFeature,
  EntitlementReadContext,
  SubscriptionEntitlementSource,
} from '../allowances/entitled-features.ts';

export type FeatureUsageQuery = { entitled: readonly EntitledFeature[]; reading: EntitlementReadContext };

export type UsageAgainstLimit = { used: Decimal; usage_percent: Decimal };

export type FeatureUsage = UsageAgainstLimit & {
  feature: FeatureModel;
  combined: CombinedEntitlement;
  window: ResetWindow;
  sources: SubscriptionEntitlementSource[];
  /** The meter measures a level; its usage is the integral over the length of the billing period. */
  is_level?: boolean;
  /** Set for usage-ordered grants. */
  granted?: {
    readonly measure: GrantMeasure;
    readonly grants: readonly GrantState[];
    /** Computes the value of further units; set for grants in money. */
    readonly valuation?: UnitValuation | undefined;
  };
};

/** Usage for decisions about allowed usage, with the end of the count: the exclusive log offset per partition, and the instant. */
export type FeatureUsageSnapshot = FeatureUsage & { high_water: Readonly<Record<string, string>>; as_of: string };

export function toLimitUsage(used: Decimal, limit: Decimal | null): UsageAgainstLimit {
  return { used, usage_percent: computeUsagePercent(used, limit) };
}
