/**
 * What a customer may use of a feature, and has used of it: gathered before the pool is held, because usage is read from another store. How far that
 * answer is in the log comes with it, so that what was committed since counts beside it (storage/models/reservation.ts).
 */
import { invalid } from '../../core/error.ts';
import type { Limit, Room } from '../../core/reservation/room.ts';
import { formatMs } from '../../core/time/instant.ts';
import { isAway } from '../../storage/failure.ts';
import type { CustomerModel } from '../../storage/models/customer.ts';
import type { FeatureModel } from '../../storage/models/feature.ts';
import { committedBehind, type Pool } from '../../storage/models/reservation.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import {
  type EntitledFeature,
  entitledFeatures,
  grantingSubscriptions,
  type Reading,
} from '../entitlements/entitled-features.ts';
import type { PlacedUsage } from '../entitlements/feature-usage.ts';
import { placedUsage } from '../entitlements/limited-usage.ts';

/** Of limits without what was committed since: that is known only where the pool is held. */
export type Gathered =
  | Exclude<Room, { kind: 'limited' }>
  | { readonly kind: 'counted'; readonly usages: PlacedUsage[] };

export async function gatherRoom(
  stores: Stores,
  { customer, feature, reading }: { customer: CustomerModel; feature: FeatureModel; reading: Reading },
): Promise<Gathered> {
  const subscriptions = await grantingSubscriptions(customer.id, undefined, reading);
  const entitled = await entitledFeatures(subscriptions, [feature.id], reading);
  if (entitled.length === 0) return { kind: 'none', reason: 'not_entitled' };
  const enabled = entitled.filter(({ combined }) => combined.is_enabled);
  if (enabled.length === 0) return { kind: 'none', reason: 'not_enabled' };
  if (enabled.every(({ combined }) => combined.usage_limit === null)) return { kind: 'open' };
  return usagesOf(stores, enabled, reading);
}

async function usagesOf(stores: Stores, entitled: readonly EntitledFeature[], reading: Reading): Promise<Gathered> {
  try {
    const usages = await placedUsage(stores, { entitled, reading });
    return { kind: 'counted', usages: usages.filter(({ combined }) => combined.is_enabled) };
  } catch (error) {
    if (isAway(error)) return { kind: 'unknown' };
    throw error;
  }
}

/** Asked where nobody commits meanwhile. */
export async function roomIn(database: Database, pool: Pool, gathered: Gathered, partitions: number): Promise<Room> {
  if (gathered.kind !== 'counted') return gathered;
  const limits: Limit[] = [];
  for (const { combined, used, window, sources, granted, high_water } of gathered.usages) {
    const start = new Date(window.start);
    const end = window.end === null ? null : new Date(window.end);
    const behind = await committedBehind(database, pool, {
      start,
      end,
      high_water: ofAllPartitions(high_water, partitions),
    });
    limits.push({
      limit: combined.usage_limit,
      is_soft_limit: combined.is_soft_limit,
      usage_reset_period: granted ? null : (sources[0]!.usage_reset_period ?? sources[0]!.subscription.billing_period),
      grant_measure: granted?.measure ?? null,
      window_start: formatMs(window.start),
      window_end: window.end === null ? null : formatMs(window.end),
      counted: used,
      ...behind,
      ...(granted?.measure === 'amount' ? { worth: granted.worth } : {}),
    });
  }
  return { kind: 'limited', limits, as_of: gathered.usages[0]!.as_of };
}

/** Of a partition that nothing was read of yet, all is behind. */
function ofAllPartitions(high_water: Readonly<Record<string, string>>, partitions: number): Record<string, string> {
  const all = Array.from({ length: partitions }, (_, partition) => [String(partition), '0']);
  return { ...Object.fromEntries(all), ...high_water };
}

export function checkMetered({ type }: FeatureModel): void {
  if (type !== 'metered') throw invalid('hold', `a ${type} feature has no units that could be held`);
}
