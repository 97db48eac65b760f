/** POST /costs/analytics-v2, also under its older name: revenue, cost and margin. */
import type { z } from 'zod';
import {
  type CostAnalytics,
  type CostAnalyticsRow,
  type CurrencyTotals,
  gatherCostAnalytics,
} from '../../../actions/reporting/costs/cost-analytics.ts';
import { requireRead } from '../../../core/foundation/access/role.ts';
import { indexById } from '../../../core/foundation/by-id.ts';
import { ZERO } from '../../../core/foundation/decimal.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { formatUs, toUs, US_PER_HOUR } from '../../../core/foundation/time/instant.ts';
import { checkRange, type RequestedRange } from '../../../core/foundation/time/range.ts';
import { computeMargin } from '../../../core/invoicing/costs/margin.ts';
import { NO_REVENUE, sumRevenue } from '../../../core/invoicing/revenue/parts.ts';
import { parseGroupBy } from '../../../core/metering/analytics/group-by.ts';
import { showPrices } from '../../catalog/prices/expand.ts';
import { checkExpand } from '../../http/list.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { BEGINNING_US, checkWindows, withBounds } from '../../metering/usage/query-fields.ts';
import { CostAnalyticsAnswer, GetCostAnalyticsRequest } from './analytics-schema.ts';

const shared = {
  method: 'post',
  tag: 'Costs',
  access: 'costsheet:read',
  success: 200,
  body: GetCostAnalyticsRequest,
  answer: CostAnalyticsAnswer,
} as const;

const DESCRIPTION =
  'Returns revenue, cost, margin and return of a range. Revenue is the charges for usage and fixed charges of the range, invoiced or to be invoiced, before discounts, credits and taxes. Cost is the price of the usage by the active cost sheet, plus its fixed prices by their time. If a divisor is 0, the percentage or return is 0. Default range: the last seven days. The permission to read invoices is required too.';

export const costAnalyticsRoutes: Route[] = [
  route({
    ...shared,
    path: '/costs/analytics-v2',
    operation_id: 'getDetailedCostAnalyticsV2',
    summary: 'Get cost analytics',
    description: DESCRIPTION,
    handle: ({ body }, context) => answerCosts(body, context),
  }),
  route({
    ...shared,
    path: '/costs/analytics',
    operation_id: 'getDetailedCostAnalytics',
    summary: 'Get cost analytics (older path)',
    description: DESCRIPTION,
    handle: ({ body }, context) => answerCosts(body, context),
  }),
];

const EXPANDED = { columns: {}, expand: ['meter', 'price'] };
const LIMIT = 50;

async function answerCosts(body: z.output<typeof GetCostAnalyticsRequest>, context: Context) {
  requireRead(context.principal, 'invoice', 'cost analytics');
  const expand = body.expand ?? [];
  checkExpand(expand, EXPANDED);
  for (const part of expand) requireRead(context.principal, part as 'meter' | 'price', `expanding ${part}`);
  const range = toAnalysedRange(body, context.now);
  const window_size = body.window_size ?? 'DAY';
  checkWindows(range, window_size);
  const page = { limit: body.limit ?? LIMIT, offset: body.offset ?? 0 };
  const query = {
    external_customer_id: body.external_customer_id,
    feature_ids: body.feature_ids?.length ? body.feature_ids : null,
    property_filters: body.property_filters,
    group_by: parseGroupBy(body.group_by ?? []),
    include_children: body.include_children ?? false,
    window_size,
    beginning_us: BEGINNING_US,
    ...range,
    ...page,
    now: context.now,
  };
  const found = await withBounds(context, (bounds) =>
    gatherCostAnalytics(context.services, context.scope, { ...query, bounds }),
  );
  return showCosts(found, { expand, range, page }, context);
}

const DAYS_7 = 7 * 24 * US_PER_HOUR;

function toAnalysedRange(input: { start_time: number | null; end_time: number | null }, now: Date): RequestedRange {
  const { start_time, end_time } = input;
  if (start_time === null && end_time === null) {
    const end_us = toUs(now.getTime());
    return { start_us: end_us - DAYS_7, end_us };
  }
  if (start_time === null) throw invalid('start_time', 'is required with end_time: state both, or neither');
  if (end_time === null) throw invalid('end_time', 'is required with start_time: state both, or neither');
  return checkRange({ start_us: start_time, end_us: end_time });
}

type CostAnalyticsView = {
  readonly expand: readonly string[];
  readonly range: RequestedRange;
  readonly page: { readonly limit: number; readonly offset: number };
};

async function showCosts(found: CostAnalytics, { expand, range, page }: CostAnalyticsView, context: Context) {
  const { rows, totals, costsheet, row_count, as_of } = found;
  const records = expand.includes('price') ? [...indexById(rows.map(({ line }) => line.price)).values()] : [];
  const prices = indexById(await showPrices(records, [], context));
  const figures = totals.map(showCurrencyTotals);
  return {
    ...(figures[0] ?? showCurrencyTotals({ currency: '', cost: ZERO, revenue: NO_REVENUE })),
    totals: figures,
    cost_analytics: rows.map((row) => ({
      ...showCostItem(row),
      costsheet_id: costsheet?.id ?? null,
      meter: expand.includes('meter') ? row.line.meter : null,
      price: prices.get(row.line.price.id) ?? null,
    })),
    costsheet_id: costsheet?.id ?? null,
    start_time: formatUs(range.start_us),
    end_time: formatUs(range.end_us),
    as_of,
    pagination: { total: row_count, ...page, next_cursor: null },
  };
}

function showCurrencyTotals({ currency, cost, revenue }: CurrencyTotals) {
  const total_revenue = sumRevenue(revenue);
  return { currency, total_revenue, total_cost: cost, ...computeMargin(total_revenue, cost), revenue_parts: revenue };
}

function showCostItem({ line: { meter, price }, customer, group, periods, revenue, ...row }: CostAnalyticsRow) {
  return {
    meter_id: meter?.id ?? null,
    meter_name: meter?.name ?? null,
    source: group.source,
    customer_id: customer?.id ?? null,
    external_customer_id: row.external_customer_id,
    properties: group.properties,
    total_cost: row.cost,
    total_quantity: row.quantity,
    total_events: row.event_count,
    cost_by_period: periods.map(({ window_us, cost, quantity, event_count }) => ({
      timestamp: formatUs(window_us),
      cost,
      quantity,
      event_count,
    })),
    currency: price.currency,
    price_id: price.id,
    total_revenue: revenue,
    margin: revenue && computeMargin(revenue, row.cost).margin,
  };
}
