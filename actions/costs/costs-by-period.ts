/**
 * Costs by windows of the clock, which add up to the cost of the range (docs/rules/costs.md, "By period"): a window costs what it added
 * to the running cost, and of a meter with windows of its own what these cost. A window of a group, or of a meter that never resets,
 * has its share by its own usage.
 */
import { hasEventGroups, toAnalyticsGroup } from '../../core/analytics/group-by.ts';
import { derivePointSize } from '../../core/analytics/point-size.ts';
import { type Cost, computeUsageCost, shareCost } from '../../core/costsheet/cost.ts';
import { computeFixedCostsByWindow } from '../../core/costsheet/fixed-cost.ts';
import { ZERO } from '../../core/decimal.ts';
import { groupBy } from '../../core/group-by.ts';
import type { WindowAnswer } from '../../core/metering/usage.ts';
import type { Scope } from '../../core/scope.ts';
import type { Microseconds } from '../../core/time/instant.ts';
import { windowCount } from '../../core/time/window.ts';
import type { Stores } from '../../storage/stores.ts';
import { mapConcurrently, QUESTIONS_AT_ONCE } from '../../storage/together.ts';
import { checkCells } from '../../storage/usage/question.ts';
import { askUsage } from '../../storage/usage/usage.ts';
import {
  type CostLine,
  type CostRow,
  type CostsAsked,
  isOfUsage,
  keyedQuestion,
  keyParts,
  questionOf,
  type UsageCostRow,
} from './gather-costs.ts';

export type CostPeriod = Cost & { readonly window_us: Microseconds };

/** In the order of the rows. */
export async function costsByPeriod(
  stores: Stores,
  scope: Scope,
  { asked, rows }: { asked: CostsAsked; rows: readonly CostRow[] },
): Promise<CostPeriod[][]> {
  if (asked.bounds) checkCells(rows.reduce((sum, { line }) => sum + windowCount(line, asked.window_size), 0));
  const lines = [...groupBy(rows.filter(isOfUsage), ({ line }) => line)];
  const periods = new Map<CostRow, CostPeriod[]>();
  await mapConcurrently(QUESTIONS_AT_ONCE, lines, async ([line, of]) => {
    const windows = await windowsOf(stores, scope, { asked, line, of });
    for (const row of of) periods.set(row, periodsOf(row, windows.get(rowKey(row)) ?? [], { asked }));
  });
  return rows.map((row) =>
    isOfUsage(row) ? periods.get(row)! : computeFixedCostsByWindow(asked.window_size, row.line),
  );
}

type Asking = { readonly asked: CostsAsked; readonly line: CostLine; readonly of: readonly UsageCostRow[] };

/** By `rowKey`, in order of time. */
async function windowsOf(stores: Stores, scope: Scope, { asked, line, of }: Asking) {
  const customers = [...new Set(of.map(({ external_customer_id }) => external_customer_id))];
  const window_size = derivePointSize(asked.window_size, line.meter.aggregation.bucket_size)!;
  const plain = { ...questionOf({ asked, line }, customers), start_us: line.start_us, window_size };
  const isGrouped = hasEventGroups(asked.group_by);
  // A level costs something in windows without events, too.
  const every_window = line.meter.aggregation.type === 'WEIGHTED_SUM';
  const running = runs(asked, line) ? { running_values: true, every_window } : {};
  const question = isGrouped ? keyedQuestion(plain, asked) : { ...plain, ...running };
  const { usage } = await askUsage(stores, scope, question);
  return new Map(
    usage.map(({ key, windows }) => {
      if (!isGrouped) return [JSON.stringify([key, null, null]), windows] as const;
      const { customer, values } = keyParts(key);
      const { source, properties } = toAnalyticsGroup(asked.group_by, values);
      return [JSON.stringify([customer, source, properties]), windows] as const;
    }),
  );
}

function rowKey({ external_customer_id, group }: UsageCostRow): string {
  return JSON.stringify([external_customer_id, group.source, group.properties]);
}

/** Whether windows have a running value. What never resets has begun before the range. */
function runs({ group_by }: CostsAsked, { meter }: CostLine): boolean {
  return !hasEventGroups(group_by) && meter.reset_usage !== 'NEVER' && !meter.aggregation.bucket_size;
}

function periodsOf(
  row: UsageCostRow,
  windows: readonly WindowAnswer[],
  { asked }: { asked: CostsAsked },
): CostPeriod[] {
  const { line } = row;
  const { price, meter } = line;
  if (windows.length === 0) return [{ ...row, window_us: line.start_us }].map(costPeriod);
  if (runs(asked, line)) return addedInTurn(windows, price);
  if (meter.aggregation.bucket_size && !hasEventGroups(asked.group_by) && meter.reset_usage !== 'NEVER')
    return windows.map((window) => ({ window_us: window.window_us, ...computeUsageCost(price, measuredBy(window)) }));
  const parts = windows.map(({ window_us, value: usage, event_count }) => ({ window_us, usage, event_count }));
  return shareCost(row.cost, parts).map(({ usage: quantity, ...part }) => ({ ...part, quantity }));
}

function costPeriod({ window_us, cost, quantity, event_count }: CostPeriod): CostPeriod {
  return { window_us, cost, quantity, event_count };
}

/** Units and events are those of the window by itself. */
function addedInTurn(windows: readonly WindowAnswer[], price: CostLine['price']): CostPeriod[] {
  let before = ZERO;
  return windows.flatMap(({ window_us, value: quantity, event_count, running_value }) => {
    const until = computeUsageCost(price, { quantity: running_value!, event_count, buckets: null }).cost;
    const cost = until.minus(before);
    before = until;
    return event_count === 0 && cost.isZero() ? [] : [{ window_us, cost, quantity, event_count }];
  });
}

function measuredBy({ value: quantity, event_count, buckets }: WindowAnswer) {
  return { quantity, event_count, buckets };
}
