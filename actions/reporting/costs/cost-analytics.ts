/** Cost analytics: revenue and cost in a time range (docs/rules/costs.md). */

import { type Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { roundMoney } from '../../../core/foundation/money.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { NO_REVENUE, type RevenueParts, RevenueSums, sumRevenue } from '../../../core/invoicing/revenue/parts.ts';
import { hasEventGroups } from '../../../core/metering/analytics/group-by.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { CostsheetModel } from '../../../storage/models/reporting/costsheet.ts';
import { loadFreshness } from '../../../storage/usage/usage.ts';
import { loadAnalyticsRecords } from '../usage/analytics-records.ts';
import { usageKey } from '../usage/export-charges.ts';
import { loadUsageAnalytics } from '../usage/usage-analytics.ts';
import { type CostPeriod, gatherCostsByPeriod } from './costs-by-period.ts';
import { type CostRow, type CostsQuery, gatherCosts, isUsageCost, type UsageCostRow } from './gather-costs.ts';
import { ensureMeterRevenue, type GatheredRevenue, gatherRevenue } from './gather-revenue.ts';

type CostAnalyticsQuery = Omit<CostsQuery, 'costsheet_id' | 'meter_ids' | 'external_customer_ids'> & {
  readonly external_customer_id: string | null;
  readonly feature_ids: readonly string[] | null;
  readonly include_children: boolean;
  readonly limit: number;
  readonly offset: number;
};

export type CurrencyTotals = { readonly currency: string; readonly cost: Decimal; readonly revenue: RevenueParts };

export type CostAnalyticsRow = CostRow & {
  readonly customer: CustomerModel | null;
  /** Revenue of this meter and customer, in the currency of the price. Null if the row has only a part of their usage, or no customer. */
  readonly revenue: Decimal | null;
  readonly periods: readonly CostPeriod[];
};

export type CostAnalytics = {
  /** Null if the environment has no cost sheet; nothing has a cost then. */
  readonly costsheet: CostsheetModel | null;
  readonly totals: readonly CurrencyTotals[];
  /** One page of rows, by descending cost. */
  readonly rows: readonly CostAnalyticsRow[];
  readonly row_count: number;
  readonly as_of: string;
};

export async function gatherCostAnalytics(
  stores: Stores,
  scope: Scope,
  query: CostAnalyticsQuery,
): Promise<CostAnalytics> {
  const as_of = await loadFreshness(stores, scope, query.now.getTime());
  const filter = await loadCostFilter(stores, scope, query);
  const costsheet = await CostsheetModel.findActive(scope, stores.postgres);
  const costsQuery = {
    ...query,
    costsheet_id: costsheet?.id ?? '',
    external_customer_ids: filter.customers?.map(({ external_id }) => external_id) ?? null,
    meter_ids: filter.meter_ids,
  };
  const rows = costsheet ? (await gatherCosts(stores, scope, costsQuery)).sort(compareByCost) : [];
  const revenue = await gatherMatchingRevenue(stores, scope, { query, ...filter });
  const page = rows.slice(query.offset, query.offset + query.limit);
  return {
    costsheet,
    totals: computeTotals(rows, revenue),
    rows: await gatherCostRows(stores, scope, { page, query: costsQuery, revenue }),
    row_count: rows.length,
    as_of,
  };
}

type CostFilter = { readonly customers: readonly CustomerModel[] | null; readonly meter_ids: readonly string[] | null };

async function loadCostFilter(stores: Stores, scope: Scope, query: CostAnalyticsQuery): Promise<CostFilter> {
  const { external_customer_id, feature_ids, include_children } = query;
  const { customers, features } = await loadAnalyticsRecords(stores.postgres, scope, {
    external_customer_ids: external_customer_id === null ? null : [external_customer_id],
    include_children,
    feature_ids,
    meter_ids: null,
  });
  return { customers, meter_ids: feature_ids && [...features.keys()] };
}

/** Compares by descending cost, whatever the currency; equal costs follow the order of their keys. */
function compareByCost(a: CostRow, b: CostRow): number {
  return b.cost.comparedTo(a.cost) || (formatRowKey(a) < formatRowKey(b) ? -1 : 1);
}

function formatRowKey({ external_customer_id, line, group }: CostRow): string {
  return JSON.stringify([external_customer_id, line.price.id, group]);
}

type RevenueFilterQuery = CostFilter & { readonly query: CostAnalyticsQuery };

/**
 * Gathers the revenue that the query selects. Usage filtered by properties is a part of a line item's usage, so it is priced alone, as in
 * usage analytics.
 */
async function gatherMatchingRevenue(
  stores: Stores,
  scope: Scope,
  question: RevenueFilterQuery,
): Promise<GatheredRevenue> {
  const { query, customers, meter_ids } = question;
  if (query.property_filters === null) return gatherRevenue(stores, scope, { ...query, customers, meter_ids });
  return gatherFilteredRevenue(stores, scope, question);
}

async function gatherFilteredRevenue(
  stores: Stores,
  scope: Scope,
  { query, customers }: RevenueFilterQuery,
): Promise<GatheredRevenue> {
  const { rows } = await loadUsageAnalytics(stores, scope, {
    external_customer_ids: customers?.map(({ external_id }) => external_id) ?? null,
    feature_ids: query.feature_ids,
    meter_ids: null,
    sources: null,
    property_filters: query.property_filters,
    group_by: { source: false, properties: [] },
    window_size: null,
    billing_anchor_ms: null,
    start_us: query.start_us,
    end_us: query.end_us,
    now: query.now,
    bounds: query.bounds,
  });
  const [sums, byMeter] = [new RevenueSums(), new Map<string, RevenueSums>()];
  for (const { item, external_customer_id, meter, cost } of rows) {
    if (item === null) continue;
    // Revenue follows invoices, which round each line.
    const amount = roundMoney(cost, item.subscription.currency);
    const ofMeter = ensureMeterRevenue(byMeter, usageKey(external_customer_id, meter.id));
    for (const each of [sums, ofMeter])
      each.add(item.subscription.currency, { kind: 'usage', amount, invoice_status: null });
  }
  return { sums, byMeter };
}

/** Computes the totals per currency; the currencies with revenue come first. */
function computeTotals(rows: readonly CostRow[], { sums }: GatheredRevenue): CurrencyTotals[] {
  const costs = groupBy(rows, ({ line }) => line.price.currency);
  const currencies = new Set([...sums.byCurrency.keys(), ...costs.keys()]);
  return Array.from(currencies, (currency) => ({
    currency,
    cost: sumDecimals((costs.get(currency) ?? []).map(({ cost }) => cost)),
    revenue: sums.byCurrency.get(currency) ?? NO_REVENUE,
  }));
}

type CostPage = { readonly page: readonly CostRow[]; readonly query: CostsQuery; readonly revenue: GatheredRevenue };

async function gatherCostRows(
  stores: Stores,
  scope: Scope,
  { page, query, revenue }: CostPage,
): Promise<CostAnalyticsRow[]> {
  const names = [...new Set(page.flatMap(({ external_customer_id }) => external_customer_id ?? []))];
  const [customers, periods] = await Promise.all([
    CustomerModel.in(scope, stores.postgres).whereIn('external_id', names).where('status', 'published'),
    gatherCostsByPeriod(stores, scope, { query, rows: page }),
  ]);
  const byName = new Map(customers.map((customer) => [customer.external_id, customer]));
  return page.map((row, index) => ({
    ...row,
    customer: byName.get(row.external_customer_id ?? '') ?? null,
    revenue: isUsageCost(row) && !hasEventGroups(query.group_by) ? findRowRevenue(row, revenue) : null,
    periods: periods[index]!,
  }));
}

function findRowRevenue(
  { external_customer_id, line: { meter, price } }: UsageCostRow,
  { byMeter }: GatheredRevenue,
): Decimal {
  const sums = byMeter.get(usageKey(external_customer_id, meter.id));
  return sumRevenue(sums?.byCurrency.get(price.currency) ?? NO_REVENUE);
}
