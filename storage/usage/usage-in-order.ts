/**
 * Usage in chronological order, for usage-ordered grants (docs/rules/entitlements.md, "Grants"): the amount that each instant adds, for a
 * meter that sums events. It is read from raw events, because rows are hourly.
 */
import { Decimal } from '../../core/foundation/decimal.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { toMs } from '../../core/foundation/time/instant.ts';
import { OrderedUsage } from '../../core/rating/allowances/ordered-usage.ts';
import type { Stores } from '../foundation/stores.ts';
import { type BilledUsage, type BilledUsageQuery, readUsageReport, toUsageQuery } from './usage.ts';

export type UsageInOrder = Pick<BilledUsage, 'as_of' | 'high_water' | 'meter_version'> & {
  readonly usage: OrderedUsage;
  /** Number of events of each portion. */
  readonly event_counts: readonly number[];
};

export async function readUsageInOrder(stores: Stores, scope: Scope, query: BilledUsageQuery): Promise<UsageInOrder> {
  const { usage, as_of, high_water, meter_version } = await readUsageReport(stores, scope, {
    ...toUsageQuery(query),
    key_of: ({ timestamp_us }) => String(toMs(timestamp_us)),
  });
  const instants = usage
    .map(({ key, total }) => ({ at: Number(key), used: new Decimal(total.value), event_count: total.event_count }))
    .sort((a, b) => a.at - b.at);
  return {
    usage: new OrderedUsage(instants.map(({ at, used }) => ({ at, used }))),
    event_counts: instants.map(({ event_count }) => event_count),
    as_of,
    high_water,
    meter_version,
  };
}
