/**
 * What was used of each metered feature since its usage began again from 0, beside what may be used: from the one reader of
 * usage (docs/rules/entitlements.md, "Usage against limits").
 */

import { byId } from '../../core/by-id.ts';
import { type Decimal, sumOf } from '../../core/decimal.ts';
import { combine } from '../../core/entitlement/combine.ts';
import { limitIn, limitWindow, type ResetWindow } from '../../core/entitlement/reset.ts';
import { groupBy } from '../../core/group-by.ts';
import { instantOf } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import type { ReadKept } from '../../storage/kept/kept-answer.ts';
import { runningUsage } from '../../storage/kept/running-question.ts';
import { MeterModel } from '../../storage/models/meter.ts';
import type { Stores } from '../../storage/stores.ts';
import { mapConcurrently } from '../../storage/together.ts';
import { readUsage, type UsageQuestion } from '../../storage/usage/usage.ts';
import { billedSubscription, CHARGES_AT_ONCE, found, runningOf } from '../billing/billable-items.ts';
import { customersAsked, membersOf } from '../billing/members.ts';
import type { EntitledFeature, HeldSource } from './entitled-features.ts';
import { type Asked, type FeatureUsage, type PlacedUsage, type Used, usedOf } from './feature-usage.ts';
import { grantedUsage, isGranted } from './granted-usage.ts';

type Limited = Omit<FeatureUsage, keyof Used> & { meter: MeterModel };

/** As usage arrives it is kept up in memory. */
export async function limitedUsage(stores: Stores, asked: Asked): Promise<FeatureUsage[]> {
  const { scope, now } = asked.reading;
  const windowOf = (one: Limited) => windowUntil(one, now);
  const usages = await counted(asked, windowOf, async ({ meter: _, ...one }, question) => {
    const { quantity } = await runningUsage(stores, scope, question);
    return { ...one, ...usedOf(quantity, one.combined.usage_limit) };
  });
  return [...usages, ...(await grantedUsage(stores, asked))];
}

/** Of a window without an end: what another process has committed a moment ahead of this one's clock is in it, as in one that has an end. */
const AHEAD_MS = 60_000;

/** As the stores have it now. */
export async function placedUsage(stores: Stores, asked: Asked): Promise<PlacedUsage[]> {
  const { scope, now } = asked.reading;
  const windowOf = ({ window }: Limited) => ({ start: window.start, end: window.end ?? now.getTime() + AHEAD_MS });
  const usages = await counted(asked, windowOf, async ({ meter: _, ...one }, question) => {
    const { quantity, high_water, as_of } = await readUsage(stores, scope, question);
    return { ...one, ...usedOf(quantity, one.combined.usage_limit), high_water, as_of };
  });
  return [...usages, ...(await grantedUsage(stores, asked))];
}

async function counted<Usage>(
  { entitled, reading: { scope, database, now } }: Asked,
  windowOf: (one: Limited) => Period,
  count: (one: Limited, question: UsageQuestion) => Promise<Usage>,
): Promise<Usage[]> {
  const metered = entitled.filter((one) => one.feature.type === 'metered' && !isGranted(one));
  const meterIds = metered.map(({ feature }) => feature.meter_id);
  const meters = await MeterModel.byId(scope, meterIds, database);
  const limited = metered.flatMap((one) => byWindow(one, found(meters, one.feature.meter_id ?? '', 'meter'), now));
  const subscriptions = limited.flatMap(({ sources }) => sources.map(({ subscription }) => subscription));
  const members = await membersOf(database, scope, [...byId(subscriptions).values()]);
  return mapConcurrently(CHARGES_AT_ONCE, limited, async (one) => {
    const { timezone, billing_anchor } = one.sources[0]!.subscription;
    const window = windowOf(one);
    const those = one.sources.flatMap(({ subscription }) => members.get(subscription.id)!);
    return count(one, {
      meter: one.meter,
      ...customersAsked(those, window, window.start),
      start_ms: window.start,
      end_ms: window.end,
      timezone,
      billing_anchor_ms: instantOf(billing_anchor),
      now_ms: now.getTime(),
    });
  });
}

/** How the same is made of usage that has arrived since, and until when: where the first of them begins again from 0. */
export function limitedAgain(usages: readonly FeatureUsage[], now: Date) {
  const until_ms = Math.min(...usages.map(({ window }) => window.end ?? Number.POSITIVE_INFINITY));
  // Of what is granted bit by bit no line keeps the order: what arrives ends the answer.
  if (usages.some(({ granted }) => granted)) return { until_ms };
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
    const window = limitWindow(now.getTime(), {
      ...runningOf(subscription),
      usage_reset_period,
      reset_usage: meter.reset_usage,
    });
    return { source, window };
  });
  return [...groupBy(placed, ({ window }) => `${window.start}/${window.end}`).values()].map((of) => {
    const held = of.map(({ source }) => source);
    const combined = combine('metered', held, of_feature);
    const usage_limit = combined.usage_limit && limitOf(held, { of_feature, meter, window: of[0].window });
    return { feature, meter, window: of[0].window, sources: held, combined: { ...combined, usage_limit } };
  });
}

type Limiting = { of_feature: readonly HeldSource[]; meter: MeterModel; window: ResetWindow };

/** As it holds in the window: of each subscription the share of a short first period, and all of it in a trial. */
function limitOf(sources: readonly HeldSource[], { of_feature, meter, window }: Limiting): Decimal {
  const { reset_usage } = meter;
  const each = [...groupBy(sources, ({ subscription }) => subscription.id).values()].map((of) => {
    const [{ subscription: record, usage_reset_period }] = of;
    const limit = combine('metered', of, of_feature).usage_limit!;
    if (record.subscription_status === 'trialing') return limit;
    return limitIn(limit, window.start, { subscription: billedSubscription(record), usage_reset_period, reset_usage });
  });
  return sumOf(each);
}
