/**
 * What was used of each metered feature since its usage began again from 0, beside what may be used: from the one reader of
 * usage (docs/rules/entitlements.md, "Usage against limits").
 */

import { integrateLevel, levelReadings } from '../../core/billing/chains/levels.ts';
import type { BilledItem } from '../../core/billing/charges.ts';
import { indexById } from '../../core/by-id.ts';
import { type Decimal, sumDecimals } from '../../core/decimal.ts';
import { combineGrants } from '../../core/entitlement/combine.ts';
import { computeLimitIn, computeLimitWindow, type ResetWindow } from '../../core/entitlement/reset.ts';
import { groupBy } from '../../core/group-by.ts';
import { AGGREGATIONS } from '../../core/metering/aggregations/index.ts';
import { priceReset } from '../../core/metering/price-reset.ts';
import { type Milliseconds, toInstant } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import type { ReadKept } from '../../storage/kept/kept-answer.ts';
import { runningUsage } from '../../storage/kept/running-question.ts';
import { MeterModel } from '../../storage/models/meter.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores } from '../../storage/stores.ts';
import { mapConcurrently } from '../../storage/together.ts';
import type { Counted } from '../../storage/usage/running-usage.ts';
import { readUsage, type UsageQuestion } from '../../storage/usage/usage.ts';
import { billedSubscription, CHARGES_AT_ONCE, requireRecord, toRunningPeriod } from '../billing/billable-items.ts';
import { buildCustomerFilter, loadMembers } from '../billing/members.ts';
import type { EntitledFeature, HeldSource } from './entitled-features.ts';
import { type Asked, type FeatureUsage, type PlacedUsage, type Used, usedOf } from './feature-usage.ts';
import { grantedUsage, isGranted } from './granted-usage.ts';

type Limited = Omit<FeatureUsage, keyof Used> & { meter: MeterModel };

/** As usage arrives it is kept up in memory. */
export async function limitedUsage(stores: Stores, asked: Asked): Promise<FeatureUsage[]> {
  const { scope, now } = asked.reading;
  const windowOf = (one: Limited) => windowUntil(one, now);
  const read = (question: UsageQuestion) => runningUsage(stores, scope, question);
  const usages = await counted(asked, { windowOf, read }, ({ meter: _, ...one }, { quantity }) => ({
    ...one,
    ...usedOf(quantity, one.combined.usage_limit),
  }));
  return [...usages, ...(await grantedUsage(stores, asked))];
}

/** Of a window without an end: what another process has committed a moment ahead of this one's clock is in it, as in one that has an end. */
const AHEAD_MS = 60_000;

/** As the stores have it now. */
export async function placedUsage(stores: Stores, asked: Asked): Promise<PlacedUsage[]> {
  const { scope, now } = asked.reading;
  const windowOf = ({ window }: Limited) => ({ start: window.start, end: window.end ?? now.getTime() + AHEAD_MS });
  const read = (question: UsageQuestion) => readUsage(stores, scope, question);
  const usages = await counted(asked, { windowOf, read }, ({ meter: _, ...one }, { quantity, high_water, as_of }) => ({
    ...one,
    ...usedOf(quantity, one.combined.usage_limit),
    high_water,
    as_of,
  }));
  return [...usages, ...(await grantedUsage(stores, asked))];
}

type Read = Counted & { readonly event_count: number };
type Counting<Answer extends Read> = {
  readonly windowOf: (one: Limited) => Period;
  readonly read: (question: UsageQuestion) => Promise<Answer>;
};

async function counted<Answer extends Read, Usage>(
  { entitled, reading: { scope, database, now } }: Asked,
  { windowOf, read }: Counting<Answer>,
  usageOf: (one: Limited, answer: Answer) => Usage,
): Promise<Usage[]> {
  const metered = entitled.filter((one) => one.feature.type === 'metered' && !isGranted(one));
  const meterIds = metered.map(({ feature }) => feature.meter_id);
  const meters = await MeterModel.byId(scope, meterIds, database);
  const limited = metered.flatMap((one) =>
    byWindow(one, requireRecord(meters, one.feature.meter_id ?? '', 'meter'), now),
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
    const window = windowOf(one);
    if (!one.is_level) return usageOf(one, await readIn(window, window.start));
    // A level is compared as it is billed (docs/rules/metering.md, "Levels over time").
    const readings = levelReadings(window, levelItem(one, subscription), billedSubscription(subscription));
    const answers = await Promise.all(readings.map(({ window: part, period }) => readIn(part, period.start)));
    const last = answers[readings.findLastIndex(({ isBefore }) => !isBefore)];
    if (!last) return usageOf(one, await readIn(window, window.start));
    return usageOf(one, { ...last, ...integrateLevel(readings, answers) });
  });
}

/** A line of the subscription's own periods. */
function levelItem(
  { meter }: Limited,
  { billing_period, billing_period_count, start_date }: SubscriptionModel,
): BilledItem {
  const periods = { billing_period, billing_period_count, start_ms: toInstant(start_date), end_ms: null };
  return { id: meter.id, price_type: 'USAGE', invoice_cadence: 'ARREAR', reset_usage: meter.reset_usage, ...periods };
}

/** How the same is made of usage that has arrived since, and until when: where the first of them begins again from 0. */
export function limitedAgain(usages: readonly FeatureUsage[], now: Date) {
  const until_ms = Math.min(...usages.map(({ window }) => window.end ?? Number.POSITIVE_INFINITY));
  // Of what is granted bit by bit no line keeps the order: what arrives ends the answer.
  if (usages.some(({ granted, is_level }) => granted || is_level)) return { until_ms };
  // It is kept for many customers: of the records only what usage is compared with.
  const compared = usages.map((one) => ({
    meter_id: one.feature.meter_id!,
    window: windowUntil(one, now),
    limit: one.combined.usage_limit,
  }));
  return {
    again: (read: ReadKept): Used[] =>
      compared.map(({ meter_id, window, limit }) => usedOf(read(meter_id, window).quantity, limit)),
    until_ms,
  };
}

function windowUntil({ window }: Pick<Limited, 'window'>, now: Date): Period {
  return { start: window.start, end: window.end ?? now.getTime() };
}

/** Subscriptions that begin again at different times have each their own usage. */
function byWindow({ feature, sources, of_feature }: EntitledFeature, meter: MeterModel, now: Date): Limited[] {
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
    const held = of.map(({ source }) => source);
    const combined = combineGrants('metered', held, of_feature);
    const usage_limit = combined.usage_limit && limitOf(held, { of_feature, meter, window: of[0].window });
    const is_level = AGGREGATIONS[meter.aggregation.type].chain_rule === 'integral';
    return { feature, meter, is_level, window: of[0].window, sources: held, combined: { ...combined, usage_limit } };
  });
}

type Limiting = { of_feature: readonly HeldSource[]; meter: MeterModel; window: ResetWindow };

/** As it holds in the window: of each subscription the share of a short first period, and all of it in a trial. */
function limitOf(sources: readonly HeldSource[], { of_feature, meter, window }: Limiting): Decimal {
  const { reset_usage } = meter;
  const each = [...groupBy(sources, ({ subscription }) => subscription.id).values()].map((of) => {
    const [{ subscription: record, usage_reset_period }] = of;
    const limit = combineGrants('metered', of, of_feature).usage_limit!;
    // A level is measured against whole periods: its limit is not cut.
    const isWhole = AGGREGATIONS[meter.aggregation.type].chain_rule === 'integral';
    if (record.subscription_status === 'trialing' || isWhole) return limit;
    return computeLimitIn(limit, window.start, {
      subscription: billedSubscription(record),
      usage_reset_period,
      reset_usage,
    });
  });
  return sumDecimals(each);
}
