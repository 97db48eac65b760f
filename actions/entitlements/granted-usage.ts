/**
 * What is left of grants: what was used of those that last now, by the rule and the order by which invoices make it free
 * (docs/rules/entitlements.md, "Grants").
 */
import type { PricedItem } from '../../core/billing/line-amount.ts';
import { valuedUsage, worthOf } from '../../core/billing/valued-usage.ts';
import { type Decimal, ZERO } from '../../core/decimal.ts';
import { hasGrants } from '../../core/entitlement/grant-record.ts';
import { addedGrants, type GrantMeasure, groupAt, historyOf } from '../../core/entitlement/grants.ts';
import { OrderedUsage } from '../../core/entitlement/ordered-usage.ts';
import { wholeWindowsWithin } from '../../core/entitlement/reset.ts';
import { instantOf } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { MeterModel } from '../../storage/models/meter.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores } from '../../storage/stores.ts';
import { mapConcurrently } from '../../storage/together.ts';
import { finished } from '../../storage/turns.ts';
import { readUsageInOrder, type UsageInOrder } from '../../storage/usage/usage-in-order.ts';
import { billedSubscription, CHARGES_AT_ONCE, found, gatherItems } from '../billing/billable-items.ts';
import { customersAsked, membersOf } from '../billing/members.ts';
import type { EntitledFeature, Reading } from './entitled-features.ts';
import { type Asked, type PlacedUsage, usedOf } from './feature-usage.ts';

export function isGranted({ sources }: EntitledFeature): boolean {
  return sources.some(hasGrants);
}

/** Of each group of grants. One that cannot be reached any more, because the feature is unlimited, is so too. */
export async function grantedUsage(stores: Stores, { entitled, reading }: Asked): Promise<PlacedUsage[]> {
  const granted = entitled.filter(isGranted);
  const meterIds = granted.map(({ feature }) => feature.meter_id);
  const meters = await MeterModel.byId(reading.scope, meterIds, reading.database);
  const reads: Reads = new Map();
  return mapConcurrently(CHARGES_AT_ONCE, granted, (one) =>
    usageOf(stores, one, { reading, meter: found(meters, one.feature.meter_id ?? '', 'meter'), reads }),
  );
}

/** Groups of one feature and subscription go by the same usage, which is read once. */
type Reads = Map<string, Promise<UsageInOrder>>;
type Of = { readonly reading: Reading; readonly meter: MeterModel };

async function usageOf(
  stores: Stores,
  { feature, combined, sources }: EntitledFeature,
  { reading, meter, reads }: Of & { reads: Reads },
): Promise<PlacedUsage> {
  const [{ subscription, grant_measure }] = sources as [EntitledFeature['sources'][number]];
  const now = reading.now.getTime();
  const billed = billedSubscription(subscription);
  const [cycle] = wholeWindowsWithin({ start: now, end: now + 1 }, billed) as [Period];
  const key = `${meter.id} ${subscription.id}`;
  const reading_now = reads.get(key) ?? usageIn(stores, cycle, { reading, meter, subscription });
  reads.set(key, reading_now);
  const read = await reading_now;
  const measure = grant_measure!;
  const price = measure === 'amount' ? await priceOf(subscription, { reading, meter }) : null;
  const { usage, worth } = await measuredBy(measure, { usage: read.usage, price, cycle });
  const enabled = sources.filter(({ is_enabled }) => is_enabled);
  const group = addedGrants(enabled);
  const history = await finished(historyOf(group, { cycles: [cycle], timezone: billed.timezone }, usage));
  const { used, window, grants } = groupAt(now, { group, cycle, usage, history });
  const { high_water, as_of } = read;
  return {
    feature,
    combined,
    sources,
    window,
    ...usedOf(used, combined.usage_limit),
    granted: { measure, grants, worth },
    high_water,
    as_of,
  };
}

async function usageIn(
  stores: Stores,
  cycle: Period,
  { reading: { scope, database, now }, meter, subscription }: Of & { subscription: SubscriptionModel },
): Promise<UsageInOrder> {
  const members = (await membersOf(database, scope, [subscription])).get(subscription.id)!;
  return readUsageInOrder(stores, scope, {
    meter,
    ...customersAsked(members, cycle, cycle.start),
    start_ms: cycle.start,
    end_ms: cycle.end,
    timezone: subscription.timezone,
    billing_anchor_ms: instantOf(subscription.billing_anchor),
    now_ms: now.getTime(),
  });
}

type Price = PricedItem['price'];

/** By which usage is charged now: of several lines of one meter the first. Without any it costs nothing. */
async function priceOf(subscription: SubscriptionModel, { reading, meter }: Of): Promise<Price | null> {
  const items = await gatherItems(reading.database, subscription);
  const now = reading.now.getTime();
  const running = items.find(
    ({ meter_id, start_ms, end_ms }) => meter_id === meter.id && start_ms <= now && (end_ms === null || now < end_ms),
  );
  return running?.price ?? null;
}

async function measuredBy(
  measure: GrantMeasure,
  { usage, price, cycle }: Pick<UsageInOrder, 'usage'> & { price: Price | null; cycle: Period },
) {
  if (measure === 'quantity') return { usage, worth: (units: Decimal) => units };
  if (price === null) return { usage: new OrderedUsage([]), worth: () => ZERO };
  const used = usage.between(cycle);
  return {
    usage: await finished(valuedUsage(usage, price, cycle.start)),
    worth: (units: Decimal) => worthOf(units, { used, price }),
  };
}
