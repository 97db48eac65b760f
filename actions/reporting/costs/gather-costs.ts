/**
 * Computes usage costs by the active cost sheet, with one query per price for all customers. Usage is priced per customer as on an invoice,
 * and divided among sources and properties in proportion to usage (docs/rules/costs.md).
 */

import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Microseconds } from '../../../core/foundation/time/instant.ts';
import type { WindowSize } from '../../../core/foundation/time/window.ts';
import { type ActivePrice, computeActivePrices } from '../../../core/invoicing/costs/active-prices.ts';
import { type Cost, computeUsageCost, shareCost } from '../../../core/invoicing/costs/cost.ts';
import { computeFixedCost, type FixedLine, planFixedLines } from '../../../core/invoicing/costs/fixed-cost.ts';
import {
  type AnalyticsGroup,
  type GroupBy,
  hasEventGroups,
  NO_GROUP,
  toAnalyticsGroup,
  toGroupValues,
} from '../../../core/metering/analytics/group-by.ts';
import { compilePropertyFilters, type PropertyFilters } from '../../../core/metering/analytics/property-filter.ts';
import { countingStart } from '../../../core/rating/charges.ts';
import { BATCH_SIZE_MAX, mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import { checkCells, type QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { readUsageReport, type UsageOfKey } from '../../../storage/usage/usage.ts';
import type { MeterUsageQuery } from '../../../storage/usage/usage-query.ts';

export type CostsQuery = {
  readonly costsheet_id: string;
  /** Null selects all ids with usage, also those without a customer record. */
  readonly external_customer_ids: readonly string[] | null;
  /** Null selects all meters with a price on the cost sheet. */
  readonly meter_ids: readonly string[] | null;
  readonly property_filters: PropertyFilters | null;
  readonly group_by: GroupBy;
  readonly window_size: WindowSize;
  /** Instant before any usage. */
  readonly beginning_us: Microseconds;
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly now: Date;
  readonly bounds?: QueryBounds | undefined;
};

/** A price of the cost sheet, with the part of the range in which it is active. */
export type CostLine = ActivePrice<PriceModel> & { readonly meter: MeterModel };

export type UsageCostRow = Cost & {
  readonly line: CostLine;
  readonly external_customer_id: string;
  readonly group: AnalyticsGroup;
};

/** Fixed cost; it belongs to no customer and no usage. */
type FixedCostRow = Cost & {
  readonly line: FixedLine<PriceModel> & { readonly meter: null };
  readonly external_customer_id: null;
  readonly group: AnalyticsGroup;
};

export type CostRow = UsageCostRow | FixedCostRow;

export function isUsageCost(row: CostRow): row is UsageCostRow {
  return row.line.meter !== null;
}

export async function gatherCosts(stores: Stores, scope: Scope, query: CostsQuery): Promise<CostRow[]> {
  const [used, fixed] = [await gatherUsageCosts(stores, scope, query), await gatherFixedCosts(stores, scope, query)];
  return [...used, ...fixed];
}

/** Gathers the fixed costs; none if the query is about customers, meters or properties. */
async function gatherFixedCosts({ postgres }: Stores, scope: Scope, query: CostsQuery): Promise<FixedCostRow[]> {
  if (query.external_customer_ids || query.meter_ids || query.property_filters) return [];
  const prices = await listCostPrices(postgres, scope, { query, type: 'FIXED' });
  return planFixedLines(prices, query).flatMap((line) => {
    const whole = computeFixedCost(line, query);
    if (whole.quantity.isZero()) return [];
    return [{ ...whole, line: { ...line, meter: null }, external_customer_id: null, group: NO_GROUP }];
  });
}

async function gatherUsageCosts(stores: Stores, scope: Scope, query: CostsQuery): Promise<UsageCostRow[]> {
  const lines = await listCostLines(stores, scope, query);
  let count = 0;
  const rows = await mapConcurrently(BATCH_SIZE_MAX, lines, async (line) => {
    const some = await gatherRows(stores, scope, { query, line });
    count += some.length;
    if (query.bounds) checkCells(count);
    return some;
  });
  return rows.flat();
}

async function listCostLines({ postgres }: Stores, scope: Scope, query: CostsQuery): Promise<CostLine[]> {
  const prices = await listCostPrices(postgres, scope, { query, type: 'USAGE' });
  const meters = await MeterModel.byId(
    scope,
    prices.map(({ meter_id }) => meter_id),
    postgres,
  );
  return computeActivePrices(prices, query).flatMap((life) => {
    const meter = meters.get(life.price.meter_id ?? '');
    return meter && (query.meter_ids?.includes(meter.id) ?? true) ? [{ ...life, meter }] : [];
  });
}

type CostPriceQuery = { readonly query: CostsQuery; readonly type: PriceModel['type'] };

function listCostPrices(database: Database, scope: Scope, { query, type }: CostPriceQuery): Promise<PriceModel[]> {
  return PriceModel.in(scope, database)
    .where({ entity_type: 'COSTSHEET', entity_id: query.costsheet_id, status: 'published', type })
    .orderBy(['sequence', 'id'])
    .execute();
}

type CostRating = { readonly query: CostsQuery; readonly line: CostLine };

async function gatherRows(stores: Stores, scope: Scope, { query, line }: CostRating): Promise<UsageCostRow[]> {
  const { external_customer_ids } = query;
  const usageQuery = buildUsageQuery({ query, line }, external_customer_ids);
  const grouped = hasEventGroups(query.group_by)
    ? readUsageReport(stores, scope, buildGroupedUsageQuery(usageQuery, query))
    : null;
  const [{ usage }, groups] = await Promise.all([readUsageReport(stores, scope, usageQuery), grouped]);
  const byCustomer = groups && groupBy(groups.usage, ({ key }) => parseKey(key).customer);
  return usage.flatMap(({ key, total }) => {
    const { value: quantity, event_count, buckets } = total;
    const whole = computeUsageCost(line.price, { quantity, event_count, buckets });
    if (event_count === 0 && whole.cost.isZero()) return [];
    const row = { line, external_customer_id: key };
    if (byCustomer === null) return [{ ...row, ...whole, group: NO_GROUP }];
    return shareByGroup(whole, byCustomer.get(key) ?? [], query.group_by).map((part) => ({ ...row, ...part }));
  });
}

function shareByGroup({ cost }: Cost, groups: readonly UsageOfKey[], group_by: GroupBy) {
  const parts = groups
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ key, total }) => ({
      group: toAnalyticsGroup(group_by, parseKey(key).values),
      usage: total.value,
      event_count: total.event_count,
    }));
  return shareCost(cost, parts).map(({ usage: quantity, ...part }) => ({ ...part, quantity }));
}

/** Builds a query of the usage that an invoice of this range would count: for a meter that never resets, all usage since the beginning. */
export function buildUsageQuery(
  { query, line }: CostRating,
  external_customer_ids: readonly string[] | null,
): Omit<MeterUsageQuery, 'definition' | 'clipped'> {
  const { meter, start_us, end_us } = line;
  const { property_filters, now, bounds, beginning_us } = query;
  return {
    meter,
    external_customer_ids,
    start_us: countingStart(meter.reset_usage, start_us, beginning_us),
    end_us,
    by_customer: true,
    only: property_filters ? { passes: compilePropertyFilters(property_filters) } : undefined,
    now_ms: now.getTime(),
    bounds,
  };
}

/** Groups the usage by customer and event group. */
export function buildGroupedUsageQuery(
  usageQuery: MeterUsageQuery,
  { group_by }: Pick<CostsQuery, 'group_by'>,
): MeterUsageQuery {
  return {
    ...usageQuery,
    by_customer: false,
    is_grouped: true,
    key_of: (event) => JSON.stringify([event.external_customer_id, ...toGroupValues(group_by, event)]),
  };
}

export function parseKey(key: string): { customer: string; values: string[] } {
  const [customer = '', ...values] = JSON.parse(key) as string[];
  return { customer, values };
}
