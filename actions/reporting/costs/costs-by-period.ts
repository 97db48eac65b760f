/**
 * Costs by clock windows, which add up to the cost of the range (docs/rules/costs.md, "By period"). The cost of a window is the amount that
 * it adds to the running cost. If the meter has windows of its own, a clock window costs the sum of the meter's windows in it. If the query
 * groups by source or properties, or the meter never resets, the cost of the range is split in proportion to the usage of the windows.
 */

import { ZERO } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Microseconds } from '../../../core/foundation/time/instant.ts';
import { windowCount } from '../../../core/foundation/time/window.ts';
import { type Cost, computeUsageCost, shareCost } from '../../../core/invoicing/costs/cost.ts';
import { computeFixedCostsByWindow } from '../../../core/invoicing/costs/fixed-cost.ts';
import { AGGREGATIONS } from '../../../core/metering/aggregations/index.ts';
import { hasEventGroups, toAnalyticsGroup } from '../../../core/metering/analytics/group-by.ts';
import { derivePointSize } from '../../../core/metering/analytics/point-size.ts';
import type { WindowAnswer } from '../../../core/metering/usage.ts';
import { BATCH_SIZE_MAX, mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import { checkCells } from '../../../storage/concurrency/query-bounds.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import {
  buildGroupedUsageQuery,
  buildUsageQuery,
  type CostLine,
  type CostRow,
  type CostsQuery,
  isUsageCost,
  parseKey,
  type UsageCostRow,
} from './gather-costs.ts';

export type CostPeriod = Cost & { readonly window_us: Microseconds };

/** Gathers costs by period; the result has the order of the rows. */
export async function gatherCostsByPeriod(
  stores: Stores,
  scope: Scope,
  { query, rows }: { query: CostsQuery; rows: readonly CostRow[] },
): Promise<CostPeriod[][]> {
  if (query.bounds) checkCells(rows.reduce((sum, { line }) => sum + windowCount(line, query.window_size), 0));
  const lines = [...groupBy(rows.filter(isUsageCost), ({ line }) => line)];
  const periods = new Map<CostRow, CostPeriod[]>();
  await mapConcurrently(BATCH_SIZE_MAX, lines, async ([line, of]) => {
    const windows = await gatherWindows(stores, scope, { query, line, of });
    for (const row of of) periods.set(row, computePeriods(row, windows.get(rowKey(row)) ?? [], { query }));
  });
  return rows.map((row) =>
    isUsageCost(row) ? periods.get(row)! : computeFixedCostsByWindow(query.window_size, row.line),
  );
}

type CostLineQuery = { readonly query: CostsQuery; readonly line: CostLine; readonly of: readonly UsageCostRow[] };

/** Gathers the windows by `rowKey`, in order of time. */
async function gatherWindows(stores: Stores, scope: Scope, { query, line, of }: CostLineQuery) {
  const customers = [...new Set(of.map(({ external_customer_id }) => external_customer_id))];
  const window_size = derivePointSize(query.window_size, line.meter.aggregation.bucket_size)!;
  const plain = { ...buildUsageQuery({ query, line }, customers), start_us: line.start_us, window_size };
  const isGrouped = hasEventGroups(query.group_by);
  // A meter that measures a level has a cost in windows without events, too.
  const every_window = AGGREGATIONS[line.meter.aggregation.type].chain_rule === 'integral';
  const running = hasRunningValues(query, line) ? { running_values: true, every_window } : {};
  const usageQuery = isGrouped ? buildGroupedUsageQuery(plain, query) : { ...plain, ...running };
  const { usage } = await readUsageReport(stores, scope, usageQuery);
  return new Map(
    usage.map(({ key, windows }) => {
      if (!isGrouped) return [JSON.stringify([key, null, null]), windows] as const;
      const { customer, values } = parseKey(key);
      const { source, properties } = toAnalyticsGroup(query.group_by, values);
      return [JSON.stringify([customer, source, properties]), windows] as const;
    }),
  );
}

function rowKey({ external_customer_id, group }: UsageCostRow): string {
  return JSON.stringify([external_customer_id, group.source, group.properties]);
}

/** Whether windows have a running value. A meter that never resets has none, because its usage began before the range. */
function hasRunningValues({ group_by }: CostsQuery, { meter }: CostLine): boolean {
  return !hasEventGroups(group_by) && meter.reset_usage !== 'NEVER' && !meter.aggregation.bucket_size;
}

function computePeriods(
  row: UsageCostRow,
  windows: readonly WindowAnswer[],
  { query }: { query: CostsQuery },
): CostPeriod[] {
  const { line } = row;
  const { price, meter } = line;
  if (windows.length === 0) return [{ ...row, window_us: line.start_us }].map(toCostPeriod);
  if (hasRunningValues(query, line)) return computeAddedCosts(windows, price);
  if (meter.aggregation.bucket_size && !hasEventGroups(query.group_by) && meter.reset_usage !== 'NEVER')
    return windows.map((window) => ({ window_us: window.window_us, ...computeUsageCost(price, toMeasured(window)) }));
  const parts = windows.map(({ window_us, value: usage, event_count }) => ({ window_us, usage, event_count }));
  return shareCost(row.cost, parts).map(({ usage: quantity, ...part }) => ({ ...part, quantity }));
}

function toCostPeriod({ window_us, cost, quantity, event_count }: CostPeriod): CostPeriod {
  return { window_us, cost, quantity, event_count };
}

/** Computes the cost that each window adds to the running cost. The units and events are those of the window alone. */
function computeAddedCosts(windows: readonly WindowAnswer[], price: CostLine['price']): CostPeriod[] {
  let before = ZERO;
  return windows.flatMap(({ window_us, value: quantity, event_count, running_value }) => {
    const until = computeUsageCost(price, { quantity: running_value!, event_count, buckets: null }).cost;
    const cost = until.minus(before);
    before = until;
    return event_count === 0 && cost.isZero() ? [] : [{ window_us, cost, quantity, event_count }];
  });
}

function toMeasured({ value: quantity, event_count, buckets }: WindowAnswer) {
  return { quantity, event_count, buckets };
}
