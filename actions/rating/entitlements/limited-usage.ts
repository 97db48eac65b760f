/**
 * Computes the usage of each metered feature since its last reset, and compares it with the limit
 * (docs/rules/entitlements.md, "Usage against limits").
 */

import { combineGrants } from '../../../core/catalog/entitlement/combine.ts';
import { indexById } from '../../../core/foundation/by-id.ts';
import { type Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { AGGREGATIONS } from '../../../core/metering/aggregations/index.ts';
import { priceReset } from '../../../core/metering/price-reset.ts';
import { computeLimitIn, computeLimitWindow, type ResetWindow } from '../../../core/rating/allowances/reset.ts';
import { integrateLevel, levelReadings } from '../../../core/rating/chains/levels.ts';
import type { BilledItem } from '../../../core/rating/charges.ts';
import type { ReadCached } from '../../../storage/cache/cache-entry.ts';
import { loadLiveUsage } from '../../../storage/cache/live-usage-query.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { LivePeriodUsage } from '../../../storage/usage/live-usage.ts';
import { type BilledUsageQuery, readUsage } from '../../../storage/usage/usage.ts';
import type { EntitledFeature, SubscriptionEntitlementSource } from '../allowances/entitled-features.ts';
import { CHARGES_AT_ONCE, requireRecord, toBilledSubscription, toRunningPeriod } from '../billable-items.ts';
import { buildCustomerFilter, loadMembers } from '../members.ts';
import {
  type FeatureUsage,
  type FeatureUsageQuery,
  type FeatureUsageSnapshot,
  toLimitUsage,
  type UsageAgainstLimit,
} from './feature-usage.ts';
import { gatherGrantedUsage, isGranted } from './granted-usage.ts';

type LimitedFeature = Omit<FeatureUsage, keyof UsageAgainstLimit> & { meter: MeterModel };

/** Gathers the limited usage. Incoming usage updates the result in memory. */
export async function gatherLimitedUsage(stores: Stores, query: FeatureUsageQuery): Promise<FeatureUsage[]> {
  const { scope, now } = query.reading;
  const toWindow = (one: LimitedFeature) => toPeriodUntil(one, now);
  const read = (query: BilledUsageQuery) => loadLiveUsage(stores, scope, query);
  const usages = await gatherCounts(query, { toWindow, read }, ({ meter: _, ...one }, { quantity }) => ({
    ...one,
    ...toLimitUsage(quantity, one.combined.usage_limit),
  }));
  return [...usages, ...(await gatherGrantedUsage(stores, query))];
}

/** Time ahead of now that a window without an end includes, for events that a process with a faster clock has just committed. */
const AHEAD_MS = 60_000;

/** Gathers the limited usage directly from the stores, because the caller needs the exact log position it includes. */
export async function gatherUsageSnapshot(stores: Stores, query: FeatureUsageQuery): Promise<FeatureUsageSnapshot[]> {
  const { scope, now } = query.reading;
  const toWindow = ({ window }: LimitedFeature) => ({
    start: window.start,
    end: window.end ?? now.getTime() + AHEAD_MS,
  });
  const read = (query: BilledUsageQuery) => readUsage(stores, scope, query);
  const usages = await gatherCounts(
    query,
    { toWindow, read },
    ({ meter: _, ...one }, { quantity, high_water, as_of }) => ({
      ...one,
      ...toLimitUsage(quantity, one.combined.usage_limit),
      high_water,
      as_of,
    }),
  );
  return [...usages, ...(await gatherGrantedUsage(stores, query))];
}

type LimitMeasurement = LivePeriodUsage & { readonly event_count: number };
type LimitUsageReader<Answer extends LimitMeasurement> = {
  readonly toWindow: (one: LimitedFeature) => Period;
  readonly read: (query: BilledUsageQuery) => Promise<Answer>;
};

async function gatherCounts<Answer extends LimitMeasurement, Usage>(
  { entitled, reading: { scope, database, now } }: FeatureUsageQuery,
  { toWindow, read }: LimitUsageReader<Answer>,
  toUsage: (one: LimitedFeature, answer: Answer) => Usage,
): Promise<Usage[]> {
  const metered = entitled.filter((one) => one.feature.type === 'metered' && !isGranted(one));
  const meterIds = metered.map(({ feature }) => feature.meter_id);
  const meters = await MeterModel.byId(scope, meterIds, database);
  const limited = metered.flatMap((one) =>
    splitByWindow(one, requireRecord(meters, one.feature.meter_id ?? '', 'meter'), now),
  );
  const subscriptions = limited.flatMap(({ sources }) => sources.map(({ subscription }) => subscription));
  const members = await loadMembers(database, scope, [...indexById(subscriptions).values()]);
  return mapConcurrently(CHARGES_AT_ONCE, limited, async (one) => {
    const { subscription } = one.sources[0]!;
    const those = one.sources.flatMap((source) => members.get(source.subscription.id)!);
    const readIn = (window: Period, service_start: Milliseconds) =>
      read({
        meter: one.meter,
        ...buildCustomerFilter(those, window, service_start),
        start_ms: window.start,
        end_ms: window.end,
        timezone: subscription.timezone,
        billing_anchor_ms: toInstant(subscription.billing_anchor),
        now_ms: now.getTime(),
      });
    const window = toWindow(one);
    if (!one.is_level) return toUsage(one, await readIn(window, window.start));
    // The usage of a level is measured as billing does before it is compared with the limit (docs/rules/metering.md,
    // "Levels over time").
    const readings = levelReadings(window, buildLevelItem(one, subscription), toBilledSubscription(subscription));
    const answers = await Promise.all(readings.map(({ window: part, period }) => readIn(part, period.start)));
    const last = answers[readings.findLastIndex(({ isBefore }) => !isBefore)];
    if (!last) return toUsage(one, await readIn(window, window.start));
    return toUsage(one, { ...last, ...integrateLevel(readings, answers) });
  });
}

/** Builds the line item that `levelReadings` requires: the level is measured over the subscription's billing periods. */
function buildLevelItem(
  { meter }: LimitedFeature,
  { billing_period, billing_period_count, start_date }: SubscriptionModel,
): BilledItem {
  const periods = { billing_period, billing_period_count, start_ms: toInstant(start_date), end_ms: null };
  return { id: meter.id, price_type: 'USAGE', invoice_cadence: 'ARREAR', reset_usage: meter.reset_usage, ...periods };
}

/** Recomputes the usage after new events, until the first window resets. */
export function buildUsageRefresh(usages: readonly FeatureUsage[], now: Date) {
  const until_ms = Math.min(...usages.map(({ window }) => window.end ?? Number.POSITIVE_INFINITY));
  // Usage-ordered grants have no running total that could be updated: new events invalidate the answer.
  if (usages.some(({ granted, is_level }) => granted || is_level)) return { until_ms };
  // The answer is cached for many customers, so it contains only the compared fields.
  const compared = usages.map((one) => ({
    meter_id: one.feature.meter_id!,
    window: toPeriodUntil(one, now),
    limit: one.combined.usage_limit,
  }));
  return {
    again: (read: ReadCached): UsageAgainstLimit[] =>
      compared.map(({ meter_id, window, limit }) => toLimitUsage(read(meter_id, window).quantity, limit)),
    until_ms,
  };
}

function toPeriodUntil({ window }: Pick<LimitedFeature, 'window'>, now: Date): Period {
  return { start: window.start, end: window.end ?? now.getTime() };
}

/** Groups the sources by reset window, because subscriptions with different reset times count usage separately. */
function splitByWindow(
  { feature, sources, of_feature }: EntitledFeature,
  meter: MeterModel,
  now: Date,
): LimitedFeature[] {
  const placed = sources.map((source) => {
    const { subscription, usage_reset_period } = source;
    const window = computeLimitWindow(now.getTime(), {
      ...toRunningPeriod(subscription),
      usage_reset_period,
      reset_usage: priceReset(meter),
    });
    return { source, window };
  });
  return [...groupBy(placed, ({ window }) => `${window.start}/${window.end}`).values()].map((of) => {
    const heldSources = of.map(({ source }) => source);
    const combined = combineGrants('metered', heldSources, of_feature);
    const usage_limit = combined.usage_limit && computeLimit(heldSources, { of_feature, meter, window: of[0].window });
    const is_level = AGGREGATIONS[meter.aggregation.type].chain_rule === 'integral';
    return {
      feature,
      meter,
      is_level,
      window: of[0].window,
      sources: heldSources,
      combined: { ...combined, usage_limit },
    };
  });
}

type LimitTerms = { of_feature: readonly SubscriptionEntitlementSource[]; meter: MeterModel; window: ResetWindow };

/** Computes the limit in the window: prorated in a short first period, and the whole limit in a trial. */
function computeLimit(
  sources: readonly SubscriptionEntitlementSource[],
  { of_feature, meter, window }: LimitTerms,
): Decimal {
  const { reset_usage } = meter;
  const each = [...groupBy(sources, ({ subscription }) => subscription.id).values()].map((of) => {
    const [{ subscription: record, usage_reset_period }] = of;
    const limit = combineGrants('metered', of, of_feature).usage_limit!;
    // A level is measured against whole periods, so its limit is not prorated.
    const isWhole = AGGREGATIONS[meter.aggregation.type].chain_rule === 'integral';
    if (record.subscription_status === 'trialing' || isWhole) return limit;
    return computeLimitIn(limit, window.start, {
      subscription: toBilledSubscription(record),
      usage_reset_period,
      reset_usage,
    });
  });
  return sumDecimals(each);
}
