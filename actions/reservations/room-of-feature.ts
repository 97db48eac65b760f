/**
 * Gathers the limits and usage of a customer's feature, before the pool is locked, because usage comes from another store. The result
 * includes its log position, so that later commits are added (storage/models/reservations/reservation.ts).
 */

import type { FeatureLimit, FeatureRoom } from '../../core/credits/reservations/room.ts';
import { indexById } from '../../core/foundation/by-id.ts';
import { sumDecimals, ZERO } from '../../core/foundation/decimal.ts';
import { invalid } from '../../core/foundation/error.ts';
import { groupBy } from '../../core/foundation/group-by.ts';
import { formatMs, toInstant } from '../../core/foundation/time/instant.ts';
import { isUnavailable } from '../../storage/foundation/failure.ts';
import type { Database, Stores } from '../../storage/foundation/stores.ts';
import type { CustomerModel } from '../../storage/models/catalog/customer.ts';
import type { FeatureModel } from '../../storage/models/catalog/feature.ts';
import {
  loadHeldByCustomer,
  loadUncountedCommitted,
  type ReservationPool,
  type Sharer,
} from '../../storage/models/reservations/reservation.ts';
import { buildChildrenQuery, type SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import {
  type EntitledFeature,
  type EntitlementReadContext,
  listEntitledFeatures,
  listGrantingSubscriptions,
} from '../rating/allowances/entitled-features.ts';
import type { FeatureUsageSnapshot } from '../rating/entitlements/feature-usage.ts';
import { gatherUsageSnapshot } from '../rating/entitlements/limited-usage.ts';

/**
 * Room before the subtraction of commits made after the usage was read; `computeRoom` subtracts them.
 */
export type GatheredRoom =
  | Exclude<FeatureRoom, { kind: 'limited' }>
  | { readonly kind: 'counted'; readonly usages: FeatureUsageSnapshot[]; readonly inherited: InheritedSubscriptions };
type CountedRoom = Extract<GatheredRoom, { kind: 'counted' }>;

/** Inherited subscriptions, including ended ones, by the id of the parent that has the limit. */
type InheritedSubscriptions = ReadonlyMap<string, readonly SubscriptionModel[]>;

export async function gatherRoom(
  stores: Stores,
  { customer, feature, reading }: { customer: CustomerModel; feature: FeatureModel; reading: EntitlementReadContext },
): Promise<GatheredRoom> {
  const subscriptions = await listGrantingSubscriptions(customer.id, undefined, reading);
  const entitled = await listEntitledFeatures(subscriptions, [feature.id], reading);
  if (entitled.length === 0) return { kind: 'none', reason: 'not_entitled' };
  const enabled = entitled.filter(({ combined }) => combined.is_enabled);
  if (enabled.length === 0) return { kind: 'none', reason: 'not_enabled' };
  if (enabled.every(({ combined }) => combined.usage_limit === null)) return { kind: 'open' };
  return gatherUsages(stores, enabled, reading);
}

async function gatherUsages(
  stores: Stores,
  entitled: readonly EntitledFeature[],
  reading: EntitlementReadContext,
): Promise<GatheredRoom> {
  try {
    const inherited = await listInheritedSubscriptions(entitled, reading);
    const usages = await gatherUsageSnapshot(stores, { entitled, reading });
    const enabled = usages.filter(({ combined }) => combined.is_enabled);
    return { kind: 'counted', usages: enabled, inherited };
  } catch (error) {
    if (isUnavailable(error)) return { kind: 'unknown' };
    throw error;
  }
}

async function listInheritedSubscriptions(
  entitled: readonly EntitledFeature[],
  { scope, database }: EntitlementReadContext,
): Promise<InheritedSubscriptions> {
  const subscriptions = indexById(entitled.flatMap(({ sources }) => sources.map(({ subscription }) => subscription)));
  const parents = [...subscriptions.values()].filter(({ subscription_type }) => subscription_type === 'PARENT');
  if (parents.length === 0) return new Map();
  const inherited = await buildChildrenQuery(scope, { parents, type: 'INHERITED' }, database);
  return groupBy(inherited, ({ parent_subscription_id }) => parent_subscription_id!);
}

/** Lists the customers whose usage counts against the limits. */
export function listSharingCustomers({ usages, inherited }: CountedRoom): string[] {
  return usages.flatMap((usage) => listSharers(usage, inherited).map(({ customer_id }) => customer_id));
}

/**
 * Lists the customers that share limits. A customer that inherits a subscription shares its limits from the start to the end of the
 * inheritance.
 */
function listSharers({ sources }: FeatureUsageSnapshot, inherited: InheritedSubscriptions): Sharer[] {
  const subscriptions = [...indexById(sources.map(({ subscription }) => subscription)).values()];
  const own = new Set(subscriptions.map(({ customer_id }) => customer_id));
  return [
    ...Array.from(own, (customer_id) => ({ customer_id, joined: null, left: null })),
    ...subscriptions
      .flatMap(({ id }) => inherited.get(id) ?? [])
      .map(({ customer_id, start_date, end_date }) => ({ customer_id, joined: start_date, left: end_date ?? null })),
  ];
}

type FeatureRoomQuery = { readonly pool: ReservationPool; readonly partitions: number; readonly now: Date };

/**
 * Subtracts later commits. Runs under the pool's lock or, for a check without a reservation, in one snapshot, so the commits do not change
 * meanwhile.
 */
export async function computeRoom(
  database: Database,
  gathered: GatheredRoom,
  { pool, partitions, now }: FeatureRoomQuery,
): Promise<FeatureRoom> {
  if (gathered.kind !== 'counted') return gathered;
  const others = listSharingCustomers(gathered).filter((id) => id !== pool.customer_id);
  const held = await loadHeldByCustomer(database, pool, { customer_ids: [...new Set(others)], now });
  const limits: FeatureLimit[] = [];
  for (const usage of gathered.usages) {
    const sharers = listSharers(usage, gathered.inherited);
    const high_water = fillPartitions(usage.high_water, partitions);
    const start = new Date(usage.window.start);
    const end = usage.window.end === null ? null : new Date(usage.window.end);
    const committedSince = await loadUncountedCommitted(database, pool, { start, end, high_water, sharers });
    const present = new Set(sharers.filter((one) => isSharing(one, now)).map(({ customer_id }) => customer_id));
    const held_by_others = sumDecimals([...present].map((id) => held.get(id) ?? ZERO));
    limits.push({ ...toLimit(usage), ...committedSince, held_by_others });
  }
  return { kind: 'limited', limits, as_of: gathered.usages[0]!.as_of };
}

/**
 * Whether the customer shares the limit now. Reservations of a customer that has left the hierarchy do not count, because they will be used
 * under the limits of that customer.
 */
function isSharing({ joined, left }: Sharer, now: Date): boolean {
  return (joined === null || toInstant(joined) <= now.getTime()) && (left === null || now.getTime() < toInstant(left));
}

function toLimit({ combined, used, window, sources, granted }: FeatureUsageSnapshot) {
  return {
    limit: combined.usage_limit,
    is_soft_limit: combined.is_soft_limit,
    usage_reset_period: granted ? null : (sources[0]!.usage_reset_period ?? sources[0]!.subscription.billing_period),
    grant_measure: granted?.measure ?? null,
    window_start: formatMs(window.start),
    window_end: window.end === null ? null : formatMs(window.end),
    counted: used,
    ...(granted?.valuation ? { valuation: granted.valuation } : {}),
  };
}

/**
 * Sets offset 0 for each partition that the usage read did not cover. Every reservation commit on that partition then
 * counts as newer than the read.
 */
function fillPartitions(high_water: Readonly<Record<string, string>>, partitions: number): Record<string, string> {
  const all = Array.from({ length: partitions }, (_, partition) => [String(partition), '0']);
  return { ...Object.fromEntries(all), ...high_water };
}

export function checkMetered({ type }: FeatureModel): void {
  if (type !== 'metered') throw invalid('hold', `a ${type} feature has no units that could be held`);
}
