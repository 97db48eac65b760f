/** Dashboards: revenue by customer and over time, recurring revenue, recent records (docs/rules/revenue.md). */
import type { z } from 'zod';
import {
  loadRevenueDashboard,
  loadRevenueTrend,
  type RevenueDashboard,
  type RevenueTrend,
} from '../../../actions/reporting/revenue/revenue-dashboard.ts';
import { type Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import { ceilToMs, formatUs, type Milliseconds, toUs } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { checkRange } from '../../../core/foundation/time/range.ts';
import { type WindowSize, windowAt, windowCount } from '../../../core/foundation/time/window.ts';
import type { PaymentStatus } from '../../../core/invoicing/invoice/record.ts';
import { formatWindowLabel, selectWindowSize } from '../../../core/invoicing/revenue/windows.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { countInvoicesByPayment, countSubscriptionsByPlan } from '../../../storage/reporting/recent.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { withBounds } from '../../metering/usage/query-fields.ts';
import {
  CUSTOMERS_MAX,
  DashboardRevenuesAnswer,
  DashboardRevenuesRequest,
  RevenueDashboardAnswer,
  RevenueDashboardRequest,
} from './schema.ts';

const shared = { method: 'post', tag: 'Dashboard', access: 'invoice:read', success: 200 } as const;

export const dashboardRoutes: Route[] = [
  route({
    ...shared,
    path: '/dashboard/revenue-dashboard',
    operation_id: 'getRevenueDashboard',
    summary: 'Get the revenue dashboard',
    description:
      'Returns the charges of final invoices whose service began in the period, before discounts, credits and taxes. It has one item per customer and currency, the greatest first, the revenue per window, and recurring revenue with its movements. Amounts of different currencies are never added up.',
    body: RevenueDashboardRequest,
    answer: RevenueDashboardAnswer,
    handle: ({ body }, context) => answerDashboard(body, context),
  }),
  route({
    ...shared,
    path: '/dashboard/revenues',
    operation_id: 'getDashboardRevenues',
    summary: 'Get the revenue trend',
    description:
      'Returns revenue and recurring revenue of the last windows, and the new subscriptions and payment outcomes of invoices of the last thirty days.',
    body: DashboardRevenuesRequest,
    answer: DashboardRevenuesAnswer,
    handle: ({ body }, context) => answerRevenues(body, context),
  }),
];

async function answerDashboard(body: z.output<typeof RevenueDashboardRequest>, context: Context) {
  const { start_us, end_us } = checkPeriod(body);
  const range = { start: Math.ceil(start_us / 1000), end: ceilToMs(end_us) };
  const window_size = body.window_size ?? selectWindowSize(range);
  checkShown({ start_us, end_us }, window_size);
  const query = {
    range,
    customer_ids: body.customer_ids?.length ? body.customer_ids : null,
    window_size,
    limit: body.limit ?? CUSTOMERS_MAX,
    offset: body.offset ?? 0,
    now: context.now,
  };
  const found = await withBounds(context, ({ signal }) =>
    loadRevenueDashboard(context.services, context.scope, { ...query, signal }),
  );
  return showDashboard(found, window_size);
}

function checkPeriod({ period_start, period_end }: { period_start: number; period_end: number }) {
  if (period_end <= period_start) throw invalid('period_end', 'must be after period_start');
  return checkRange({ start_us: period_start, end_us: period_end });
}

/** Maximum number of windows in an answer: three years of days. */
const WINDOWS_SHOWN_MAX = 1_100;

function checkShown(range: { start_us: number; end_us: number }, size: WindowSize): void {
  if (windowCount(range, size) <= WINDOWS_SHOWN_MAX) return;
  throw invalid('window_size', `the period has more than ${WINDOWS_SHOWN_MAX} windows of ${size}: ask for larger ones`);
}

function showDashboard(found: RevenueDashboard, size: WindowSize) {
  const totals = found.currencies.map(({ currency, customers, ...amounts }) => ({
    currency,
    shown: { ...showTotals(amounts), customer_count: customers },
  }));
  const graphs = showGraphs(found, size);
  const [first] = totals.toSorted((a, b) => b.shown.total_revenue.comparedTo(a.shown.total_revenue));
  return {
    summaries: Object.fromEntries(totals.map(({ currency, shown }) => [currency, shown])),
    items: found.customers.map(({ customer, customer_id, currency, ...amounts }) => ({
      customer_id,
      customer_name: customer?.name ?? '',
      external_customer_id: customer?.external_id ?? '',
      currency,
      ...showTotals(amounts),
    })),
    graph: { total_revenue: graphs[first?.currency ?? ''] ?? [], by_currency: graphs },
    mrr: showRecurring(found, size),
    as_of: instantText(found.as_of),
  };
}

function showTotals({ usage, fixed }: { usage: Decimal; fixed: Decimal }) {
  return { total_revenue: usage.plus(fixed), total_usage_revenue: usage, total_fixed_revenue: fixed };
}

/** Groups by currency. Each currency has every window, in order of time. */
function groupWindowsByCurrency({ windows, revenue }: RevenueTrend): [string, { window: Period; total: Decimal }[]][] {
  return Array.from(
    groupBy(revenue, ({ currency }) => currency),
    ([currency, of]) => {
      const byStart = new Map(of.map(({ start, usage, fixed }) => [start, usage.plus(fixed)]));
      return [currency, windows.map((window) => ({ window, total: byStart.get(window.start) ?? ZERO }))];
    },
  );
}

function showGraphs(trend: RevenueTrend, size: WindowSize) {
  return Object.fromEntries(
    groupWindowsByCurrency(trend).map(([currency, of]) => [
      currency,
      of.map(({ window: { start }, total: value }) => ({
        label: formatWindowLabel(start, size),
        value,
        timestamp: instantText(start),
      })),
    ]),
  );
}

function showRecurring({ recurring, recurring_windows }: RevenueTrend, size: WindowSize) {
  const ends = new Map(recurring_windows.map(({ start, end }) => [start, end]));
  return Object.fromEntries(
    Array.from(
      groupBy(recurring, ({ currency }) => currency),
      ([currency, of]) => {
        const windows = of.map(({ currency: _, start, ...moves }) => ({
          window_start: instantText(start),
          window_end: instantText(ends.get(start)!),
          window_label: formatWindowLabel(start, size),
          ...moves,
        }));
        return [currency, { mrr: of.at(-1)!.closing, windows }];
      },
    ),
  );
}

function instantText(ms: Milliseconds): string {
  return formatUs(toUs(ms));
}

const WINDOW_COUNT = 6;
const LATELY_MS = 30 * DAY_MS;

async function answerRevenues(body: z.output<typeof DashboardRevenuesRequest>, context: Context) {
  const { services, scope, now } = context;
  const window_size = body.revenue_trend?.window_size ?? 'MONTH';
  const window_count = body.revenue_trend?.window_count ?? WINDOW_COUNT;
  const range = lastWindows(now.getTime(), window_size, window_count);
  const lately = { start: now.getTime() - LATELY_MS, end: now.getTime() };
  const [trend, subscriptions, invoices] = await Promise.all([
    withBounds(context, ({ signal }) =>
      loadRevenueTrend(services, scope, { range, customer_ids: null, window_size, now, signal }),
    ),
    recentSubscriptions(lately, context),
    countInvoicesByPayment(scope, lately, services.postgres),
  ]);
  const period = { period_start: instantText(lately.start), period_end: instantText(lately.end) };
  return {
    revenue_trend: { currency_revenue_windows: showTrend(trend, window_size), window_size, window_count },
    mrr: showRecurring(trend, window_size),
    recent_subscriptions: { ...subscriptions, ...period },
    invoice_payment_status: { ...countByPaymentOutcome(invoices), ...period },
    as_of: instantText(trend.as_of),
  };
}

/** Returns the interval of the last `count` windows, including the running one. */
function lastWindows(now: number, size: WindowSize, count: number): Period {
  const running = windowAt(now, size, { timezone: 'UTC' });
  let { start } = running;
  for (let index = 1; index < count; index++) start = windowAt(start - 1, size, { timezone: 'UTC' }).start;
  return { start, end: running.end };
}

function showTrend(trend: RevenueTrend, size: WindowSize) {
  return Object.fromEntries(
    groupWindowsByCurrency(trend).map(([currency, of]) => [
      currency,
      {
        windows: of.map(({ window, total: total_revenue }) => ({
          window_start: instantText(window.start),
          window_end: instantText(window.end),
          window_label: formatWindowLabel(window.start, size),
          total_revenue,
        })),
      },
    ]),
  );
}

async function recentSubscriptions(lately: Period, { scope, services }: Context) {
  const counts = await countSubscriptionsByPlan(scope, lately, services.postgres);
  const plans = await PlanModel.byId(
    scope,
    counts.map(({ plan_id }) => plan_id),
    services.postgres,
  );
  return {
    total_count: counts.reduce((sum, { count }) => sum + count, 0),
    plans: counts
      .map(({ plan_id, count }) => ({ plan_id, plan_name: plans.get(plan_id)?.name ?? '', count }))
      .toSorted((a, b) => b.count - a.count || (a.plan_id < b.plan_id ? -1 : 1)),
  };
}

const PAID: readonly PaymentStatus[] = ['SUCCEEDED', 'OVERPAID'];
const PENDING: readonly PaymentStatus[] = ['INITIATED', 'PENDING', 'PROCESSING'];

/** Counts invoices by payment outcome; refunded and voided invoices are not counted. */
function countByPaymentOutcome(counts: readonly { payment_status: PaymentStatus; count: number }[]) {
  const over = (statuses: readonly PaymentStatus[]) =>
    counts.reduce((sum, { payment_status, count }) => sum + (statuses.includes(payment_status) ? count : 0), 0);
  return { paid: over(PAID), pending: over(PENDING), failed: over(['FAILED']) };
}
