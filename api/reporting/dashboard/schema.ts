/** Requests and answers of dashboards (docs/rules/revenue.md). */
import { z } from 'zod';
import { decimalText, orNull } from '../../../core/foundation/record.ts';
import { WINDOW_SIZES } from '../../../core/foundation/time/window.ts';
import { windowSize } from '../../../core/metering/meter/record.ts';
import { listShape } from '../../http/list.ts';
import { requiredInstantUs } from '../../metering/usage/query-fields.ts';

export const CUSTOMERS_MAX = 1_000;

const { limit, offset } = listShape({}).shape;

export const RevenueDashboardRequest = z
  .object({
    period_start: requiredInstantUs.meta({
      description: 'Start of the period. A charge counts in it if its service began at this instant or later.',
    }),
    period_end: requiredInstantUs.meta({
      description: 'Exclusive end of the period. A charge counts in it if its service began before this instant.',
    }),
    customer_ids: z
      .array(z.string())
      .max(CUSTOMERS_MAX, { error: `must not have more than ${CUSTOMERS_MAX} entries` })
      .nullish()
      .meta({ description: 'Customers to include, at most 1,000; all if absent or empty.' }),
    window_size: orNull(windowSize).meta({
      description:
        'Size of the windows of the graph and of recurring revenue, in UTC. Default: DAY for up to 62 days, else MONTH. More than 1,100 windows are refused.',
    }),
    limit: orNull(limit.unwrap()).meta({ description: 'Maximum number of items, 1 to 1,000. Default: 1,000.' }),
    offset: orNull(offset.unwrap()).meta({ description: 'Number of items to skip before the page. Default: 0.' }),
  })
  .meta({
    id: 'RevenueDashboardRequest',
    example: { period_start: '2026-01-01T00:00:00Z', period_end: '2026-04-01T00:00:00Z' },
  });

const Totals = {
  total_revenue: decimalText.meta({ description: 'Usage and fixed charges of final invoices.' }),
  total_usage_revenue: decimalText.meta({ description: 'Part of the revenue from usage.' }),
  total_fixed_revenue: decimalText.meta({ description: 'Part of the revenue from fixed charges.' }),
};

const Customer = z
  .object({
    customer_id: z.string().meta({ description: 'Customer whose subscriptions were charged.' }),
    customer_name: z.string().meta({ description: 'Display name of the customer.' }),
    external_customer_id: z.string().meta({ description: 'Your own id of the customer.' }),
    currency: z
      .string()
      .meta({ description: 'Currency code (ISO 4217), in lower case. A customer has one item per currency.' }),
    ...Totals,
  })
  .meta({ id: 'RevenueDashboardCustomer' });

const Point = z
  .object({
    label: z.string().meta({ description: 'Label of the window: `Jan 2026`, or its first day.' }),
    value: decimalText.meta({ description: 'Revenue of the window.' }),
    timestamp: z.string().meta({ description: 'Start of the window, or of the range if the range cuts the window.' }),
  })
  .meta({ id: 'RevenueGraphPoint' });

const Moves = z
  .object({
    window_start: z.string().meta({ description: 'Start of the window.' }),
    window_end: z.string().meta({ description: 'Exclusive end of the window; for the running window, now.' }),
    window_label: z.string().meta({ description: 'Label of the window for display.' }),
    opening: decimalText.meta({ description: 'Monthly recurring revenue just before the window.' }),
    new: decimalText.meta({ description: 'Recurring revenue of customers that had none before the window.' }),
    expansion: decimalText.meta({
      description: 'Increase for customers that had recurring revenue before the window.',
    }),
    contraction: decimalText.meta({ description: 'Decrease for customers that still have recurring revenue.' }),
    churn: decimalText.meta({ description: 'Recurring revenue of customers that have none any more.' }),
    closing: decimalText.meta({ description: 'opening + new + expansion − contraction − churn.' }),
  })
  .meta({ id: 'RecurringRevenueMoves' });

const byCurrency = <S extends z.ZodType>(shape: S) => z.record(z.string(), shape);

const mrr = byCurrency(
  z.object({
    mrr: decimalText.meta({ description: 'Monthly recurring revenue at the end of the last window.' }),
    windows: z.array(Moves).meta({ description: 'Changes of the recurring revenue in each window.' }),
  }),
).meta({ description: 'Recurring revenue by currency: the monthly amount of fixed charges of subscriptions.' });

const as_of = z.string().meta({ description: 'Instant before which every finalized invoice is included.' });

export const RevenueDashboardAnswer = z
  .object({
    summaries: byCurrency(
      z
        .object({
          ...Totals,
          customer_count: z.int().meta({ description: 'Number of customers with revenue in the currency.' }),
        })
        .meta({ id: 'RevenueDashboardSummary' }),
    ).meta({ description: 'Totals of all requested customers, by currency.' }),
    items: z
      .array(Customer)
      .meta({ description: 'Page of items per customer and currency, the greatest total_revenue first.' }),
    graph: z
      .object({
        total_revenue: z.array(Point).meta({ description: 'Points of the currency with the most revenue.' }),
        by_currency: byCurrency(z.array(Point)).meta({ description: 'Points of each currency.' }),
      })
      .meta({ id: 'RevenueDashboardGraph', description: 'Revenue over time, per window.' }),
    mrr,
    as_of,
  })
  .meta({ id: 'RevenueDashboardResponse' });

export const DashboardRevenuesRequest = z
  .object({
    revenue_trend: z
      .object({
        window_count: orNull(z.int().min(1).max(120)).meta({
          description: 'Number of windows, 1 to 120; the running window is the last. Default: 6.',
        }),
        window_size: orNull(windowSize).meta({ description: 'Size of the windows. Default: MONTH.' }),
      })
      .nullish()
      .meta({ description: 'Number and size of the windows of `revenue_trend`.' }),
  })
  .meta({ id: 'DashboardRevenuesRequest', example: { revenue_trend: { window_count: 3 } } });

const RevenueWindow = z
  .object({
    window_start: z.string().meta({ description: 'Start of the window.' }),
    window_end: z.string().meta({ description: 'Exclusive end of the window.' }),
    window_label: z.string().meta({ description: 'Label of the window for display.' }),
    total_revenue: decimalText.meta({ description: 'Charges of final invoices whose service began in the window.' }),
  })
  .meta({ id: 'RevenueWindow' });

const lately = {
  period_start: z.string().meta({ description: 'Thirty days before the request.' }),
  period_end: z.string().meta({ description: 'Time of the request.' }),
};

export const DashboardRevenuesAnswer = z
  .object({
    revenue_trend: z
      .object({
        currency_revenue_windows: byCurrency(
          z.object({
            windows: z.array(RevenueWindow).meta({ description: 'Windows in order of time, including empty ones.' }),
          }),
        ).meta({ description: 'Revenue of each window, by currency.' }),
        window_size: z.enum(WINDOW_SIZES).meta({ description: 'Size of the windows.' }),
        window_count: z.int().meta({ description: 'Number of windows.' }),
      })
      .meta({ id: 'RevenueTrendResponse', description: 'Revenue over time.' }),
    mrr,
    recent_subscriptions: z
      .object({
        total_count: z.int().meta({ description: 'Number of subscriptions.' }),
        plans: z
          .array(
            z.object({
              plan_id: z.string().meta({ description: 'Plan of the subscriptions.' }),
              plan_name: z.string().meta({ description: 'Name of the plan.' }),
              count: z.int().meta({ description: 'Number of subscriptions of the plan.' }),
            }),
          )
          .meta({ description: 'Counts per plan, the highest first.' }),
        ...lately,
      })
      .meta({
        id: 'RecentSubscriptionsResponse',
        description: 'Subscriptions created in the last thirty days, without drafts.',
      }),
    invoice_payment_status: z
      .object({
        paid: z.int().meta({ description: 'Number of paid invoices.' }),
        pending: z.int().meta({ description: 'Number of invoices that are not paid yet.' }),
        failed: z.int().meta({ description: 'Number of invoices whose last payment failed.' }),
        ...lately,
      })
      .meta({
        id: 'InvoicePaymentStatusResponse',
        description: 'Payment outcomes of final invoices that were created in the last thirty days.',
      }),
    as_of,
  })
  .meta({ id: 'DashboardRevenuesResponse' });
