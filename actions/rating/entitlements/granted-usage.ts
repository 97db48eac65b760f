/**
 * Computes the usage of the current usage-ordered grants, and so their remaining quantity. It applies the grants by the
 * rule and in the order of invoices (docs/rules/entitlements.md, "Grants").
 */

import { hasGrants } from '../../../core/catalog/entitlement/grant-record.ts';
import { ZERO } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { HOUR_MS, MINUTE_MS } from '../../../core/foundation/time/durations.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import {
  computeGrantGroupState,
  computeGrantHistory,
  type GrantHistoryState,
  type GrantMeasure,
  type Grants,
  sumGrants,
  toHistoryState,
} from '../../../core/rating/allowances/grants.ts';
import { OrderedUsage } from '../../../core/rating/allowances/ordered-usage.ts';
import { listWholeLimitWindows } from '../../../core/rating/allowances/reset.ts';
import type { PricedItem } from '../../../core/rating/line-amount.ts';
import { type UnitValuation, valueUsage } from '../../../core/rating/valued-usage.ts';
import { readUsageSince, type Until, type UsageSince } from '../../../storage/cache/cached-histories.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import { runYielding } from '../../../storage/concurrency/time-slicer.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { BilledUsageQuery } from '../../../storage/usage/usage.ts';
import { readUsageInOrder } from '../../../storage/usage/usage-in-order.ts';
import type { EntitledFeature, EntitlementReadContext } from '../allowances/entitled-features.ts';
import { CHARGES_AT_ONCE, gatherItems, requireRecord, toBilledSubscription } from '../billable-items.ts';
import { buildCustomerFilter, loadMembers } from '../members.ts';
import { type FeatureUsageQuery, type FeatureUsageSnapshot, toLimitUsage } from './feature-usage.ts';

export function isGranted({ sources }: EntitledFeature): boolean {
  return sources.some(hasGrants);
}

/** Gathers the usage of each group of grants, also of groups that an unlimited entitlement makes unreachable. */
export async function gatherGrantedUsage(
  stores: Stores,
  { entitled, reading }: FeatureUsageQuery,
): Promise<FeatureUsageSnapshot[]> {
  const granted = entitled.filter(isGranted);
  const meterIds = granted.map(({ feature }) => feature.meter_id);
  const meters = await MeterModel.byId(reading.scope, meterIds, reading.database);
  // Groups of one meter and subscription share one read of the usage.
  const alike = groupBy(granted, ({ feature, sources }) => `${feature.meter_id} ${sources[0]!.subscription.id}`);
  const usages = await mapConcurrently(CHARGES_AT_ONCE, [...alike.values()], (of) =>
    gatherGroupUsages(stores, of, { reading, meter: requireRecord(meters, of[0].feature.meter_id ?? '', 'meter') }),
  );
  const byEntry = new Map(usages.flat());
  return granted.map((one) => byEntry.get(one)!);
}

type GrantMeterContext = { readonly reading: EntitlementReadContext; readonly meter: MeterModel };

type GrantGroup = { readonly entry: EntitledFeature } & GrantGroupTerms;
type GrantGroupTerms = {
  readonly grants: readonly Grants[];
  readonly measure: GrantMeasure;
  /** Price that converts usage to money; null if the grants are in units. */
  readonly price: GrantPrice | null;
};
/** History per group, by the group's index. */
type KnownGrantHistory = Until<readonly GrantHistoryState[]> | null;

async function gatherGroupUsages(
  stores: Stores,
  entries: readonly [EntitledFeature, ...EntitledFeature[]],
  of: GrantMeterContext,
): Promise<[EntitledFeature, FeatureUsageSnapshot][]> {
  const [{ subscription }] = entries[0].sources as [EntitledFeature['sources'][number]];
  const now = of.reading.now.getTime();
  const billed = toBilledSubscription(subscription);
  const [cycle] = listWholeLimitWindows({ start: now, end: now + 1 }, billed) as [Period];
  const isPriced = entries.some(({ sources }) => sources[0]!.grant_measure === 'amount');
  const price = isPriced ? await loadGrantPrice(subscription, of) : null;
  const groups = entries.map((entry): GrantGroup => {
    const measure = entry.sources[0]!.grant_measure!;
    const enabled = entry.sources.filter(({ is_enabled }) => is_enabled);
    return { entry, grants: sumGrants(enabled), measure, price: measure === 'amount' ? price : null };
  });
  const query = await buildUsageQuery(cycle, { ...of, subscription });
  const usageRead = await readGrantUsage(stores, { query, groups, cycle, of });
  return computeUsages(usageRead, { groups, cycle, timezone: billed.timezone, now });
}

type GrantUsageRead = UsageSince<readonly GrantHistoryState[]>;

/**
 * Reads the usage of grants. The cache key contains every input of the history. If a customer joined or left the subscription within the
 * cycle, the usage is read without the cache.
 */
async function readGrantUsage(
  stores: Stores,
  {
    query,
    groups,
    cycle,
    of,
  }: { query: BilledUsageQuery; groups: readonly GrantGroup[]; cycle: Period; of: GrantMeterContext },
): Promise<GrantUsageRead> {
  const { scope } = of.reading;
  if (query.clipped !== undefined)
    return { read: await readUsageInOrder(stores, scope, query), known: null, cache: () => undefined };
  const { meter, external_customer_ids, timezone } = query;
  const terms = groups.map(({ grants, measure, price }) => [grants, measure, price]);
  const key = JSON.stringify([meter.id, external_customer_ids, timezone, cycle, terms]);
  return readUsageSince(stores, scope, { key, query });
}

type GrantHistoryPoint = {
  readonly groups: readonly GrantGroup[];
  readonly cycle: Period;
  readonly timezone: string;
  readonly now: Milliseconds;
};

/** A history of more events than this is cached; a shorter one is recomputed for each request. */
const CACHED_FROM = 200;
/** Minimum age of the usage in a cached history. A late event older than that invalidates the history, so the time covers most of them. */
const LATE_MS = 10 * MINUTE_MS;

async function computeUsages(
  { read, known, cache: keep }: GrantUsageRead,
  { groups, cycle, timezone, now }: GrantHistoryPoint,
): Promise<[EntitledFeature, FeatureUsageSnapshot][]> {
  const { usage, event_counts, high_water, as_of } = read;
  // The cached part of the history ends at the last full hour that is at least `LATE_MS` ago.
  const cut = Math.floor((now - LATE_MS) / HOUR_MS) * HOUR_MS;
  const isCached = usage.portions.length > CACHED_FROM && cut > (known?.at ?? cycle.start);
  const [early, late] = isCached ? usage.splitAt(cut) : [new OrderedUsage([]), usage];
  const until = isCached ? await computeHistoryUntil(cut, early, { known, groups, cycle, timezone }) : known;
  if (isCached && until) {
    const counted = event_counts.slice(0, early.portions.length).reduce((sum, count) => sum + count, 0);
    const of: GrantHistoryInput = {
      groups: groups.map(({ grants, measure, price }) => ({ grants, measure, price })),
      cycle,
      timezone,
    };
    keep({ ...until, event_count: counted + (known?.event_count ?? 0) }, async (all, at) => {
      const { made } = await computeHistoryUntil(at, all, { ...of, known: null });
      return made;
    });
  }
  const used: [EntitledFeature, FeatureUsageSnapshot][] = [];
  for (const [index, { entry, grants: group, measure, price }] of groups.entries()) {
    const { combined } = entry;
    const measured = await measureUsage(measure, { usage: late, price, cycle, until });
    const before = until?.made[index] ?? null;
    const history = await runYielding(
      computeGrantHistory(group, { cycles: [cycle], timezone }, measured.usage, before),
    );
    const at = computeGrantGroupState(now, { group, cycle, usage: measured.usage, history, before });
    const { feature, sources } = entry;
    const granted = { measure, grants: at.grants, valuation: measured.valuation };
    const base = { feature, combined, sources, window: at.window, granted, high_water, as_of };
    used.push([entry, { ...base, ...toLimitUsage(at.used, combined.usage_limit) }]);
  }
  return used;
}

/** All inputs of a history. They are cached with it, so that the audit can recompute it. */
type GrantHistoryInput = Omit<GrantHistoryPoint, 'now' | 'groups'> & { readonly groups: readonly GrantGroupTerms[] };

/** Computes the history; the caller adds `event_count`. */
async function computeHistoryUntil(
  at: Milliseconds,
  usage: OrderedUsage,
  { known, groups, cycle, timezone }: GrantHistoryInput & { known: KnownGrantHistory },
): Promise<Until<readonly GrantHistoryState[]>> {
  const made: GrantHistoryState[] = [];
  for (const [index, { grants: group, measure, price }] of groups.entries()) {
    const measured = await measureUsage(measure, { usage, price, cycle, until: known });
    const before = known?.made[index] ?? null;
    const history = await runYielding(
      computeGrantHistory(group, { cycles: [cycle], timezone }, measured.usage, before),
    );
    made.push(toHistoryState(at, { history, usage: measured.usage, before }));
  }
  return { at, event_count: 0, quantity: usage.sumBetween(cycle).plus(known?.quantity ?? ZERO), made };
}

async function buildUsageQuery(
  cycle: Period,
  { reading: { scope, database, now }, meter, subscription }: GrantMeterContext & { subscription: SubscriptionModel },
): Promise<BilledUsageQuery> {
  const members = (await loadMembers(database, scope, [subscription])).get(subscription.id)!;
  return {
    meter,
    ...buildCustomerFilter(members, cycle, cycle.start),
    start_ms: cycle.start,
    end_ms: cycle.end,
    timezone: subscription.timezone,
    billing_anchor_ms: toInstant(subscription.billing_anchor),
    now_ms: now.getTime(),
  };
}

type GrantPrice = PricedItem['price'];

/** Loads the price by which the usage is charged now: the price of the first line of the meter. Without a line the usage costs nothing. */
async function loadGrantPrice(
  subscription: SubscriptionModel,
  { reading, meter }: GrantMeterContext,
): Promise<GrantPrice | null> {
  const items = await gatherItems(reading.database, subscription);
  const now = reading.now.getTime();
  const running = items.find(
    ({ meter_id, start_ms, end_ms }) => meter_id === meter.id && start_ms <= now && (end_ms === null || now < end_ms),
  );
  return running?.price ?? null;
}

/** Converts usage to the measure of the grants: units, or their cost. `until`: the cached history that precedes this usage. */
async function measureUsage(
  measure: GrantMeasure,
  {
    usage,
    price,
    cycle,
    until,
  }: { usage: OrderedUsage; price: GrantPrice | null; cycle: Period; until: KnownGrantHistory },
): Promise<{ readonly usage: OrderedUsage; readonly valuation?: UnitValuation }> {
  if (measure === 'quantity') return { usage };
  const valuation = { used: usage.sumBetween(cycle).plus(until?.quantity ?? ZERO), price };
  if (price === null) return { usage: new OrderedUsage([]), valuation };
  return {
    usage: await runYielding(valueUsage(usage, [{ from: cycle.start, price }], until?.quantity ?? null)),
    valuation,
  };
}
