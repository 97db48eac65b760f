/** Requests and answers of dashboards (docs/rules/revenue.md). */
import { z } from 'zod';
import { windowSize } from '../../core/meter/record.ts';
import { decimalText, orNull } from '../../core/record.ts';
import { WINDOW_SIZES } from '../../core/time/window.ts';
import { requiredInstantUs } from '../events/usage-query-fields.ts';
import { listShape } from '../http/list.ts';

export const CUSTOMERS_MAX = 1_000;

const { limit, offset } = listShape({}).shape;

export const RevenueDashboardRequest = z
  .object({
    period_start: requiredInstantUs.meta({ description: 'What began to be served at this instant or later.' }),
    period_end: requiredInstantUs.meta({ description: 'What began to be served before this instant.' }),
    customer_ids: z
      .array(z.string())
      .max(CUSTOMERS_MAX, { error: `must not have more than ${CUSTOMERS_MAX} entries` })
      .nullish()
      .meta({ description: 'Of these customers alone; of all when absent or empty.' }),
    window_size: orNull(windowSize).meta({
      description:
        'Of the graph and of what recurs, on the clock of UTC: DAY for up to 62 days, else MONTH, when absent.',
    }),
    limit: orNull(limit.unwrap()).meta({ description: 'How many customers are answered at most: 1000 when absent.' }),
    offset: orNull(offset.unwrap()).meta({ description: 'How many of them to leave out before.' }),
  })
  .meta({
    id: 'RevenueDashboardRequest',
    example: { period_start: '2026-01-01T00:00:00Z', period_end: '2026-04-01T00:00:00Z' },
  });

const Totals = {
  total_revenue: decimalText.meta({ description: 'Usage and fixed charges of final invoices.' }),
  total_usage_revenue: decimalText.meta({ description: 'Of it what usage was charged.' }),
  total_fixed_revenue: decimalText.meta({ description: 'Of it what was charged for what is there.' }),
};

const Customer = z
  .object({
    customer_id: z.string().meta({ description: 'Whose subscriptions were charged.' }),
    customer_name: z.string().meta({ description: 'What people call the customer.' }),
    external_customer_id: z.string().meta({ description: 'The id of your own.' }),
    currency: z
      .string()
      .meta({ description: 'As ISO 4217 has it, in small letters: a customer has one item of each.' }),
    ...Totals,
  })
  .meta({ id: 'RevenueDashboardCustomer' });

const Point = z
  .object({
    label: z.string().meta({ description: 'The window: `Jan 2026`, or the day on which it begins.' }),
    value: decimalText.meta({ description: 'What was earned in it.' }),
    timestamp: z.string().meta({ description: 'Where the window begins, or the range where that cuts it.' }),
  })
  .meta({ id: 'RevenueGraphPoint' });

const Moves = z
  .object({
    window_start: z.string().meta({ description: 'Where the window begins.' }),
    window_end: z.string().meta({ description: 'Where it ends: the running one now.' }),
    window_label: z.string().meta({ description: 'The window as people read it.' }),
    opening: decimalText.meta({ description: 'What recurs each month, just before the window.' }),
    new: decimalText.meta({ description: 'Of customers of whom nothing did before.' }),
    expansion: decimalText.meta({ description: 'What more of customers of whom something did.' }),
    contraction: decimalText.meta({ description: 'What less of customers of whom something still does.' }),
    churn: decimalText.meta({ description: 'Of customers of whom nothing does any more.' }),
    closing: decimalText.meta({ description: 'opening + new + expansion − contraction − churn.' }),
  })
  .meta({ id: 'RecurringRevenueMoves' });

const byCurrency = <S extends z.ZodType>(shape: S) => z.record(z.string(), shape);

const mrr = byCurrency(
  z.object({
    mrr: decimalText.meta({ description: 'What recurs each month at the end of the last window.' }),
    windows: z.array(Moves).meta({ description: 'How it came to that, window by window.' }),
  }),
).meta({ description: 'What recurs, by currency: fixed charges of subscriptions, by the month.' });

const as_of = z.string().meta({ description: 'What became final before this instant is in the answer.' });

export const RevenueDashboardAnswer = z
  .object({
    summaries: byCurrency(
      z
        .object({ ...Totals, customer_count: z.int().meta({ description: 'How many customers have revenue in it.' }) })
        .meta({ id: 'RevenueDashboardSummary' }),
    ).meta({ description: 'What all customers that are asked for come to, by currency.' }),
    items: z.array(Customer).meta({ description: 'A page of the customers, the greatest total_revenue first.' }),
    graph: z
      .object({
        total_revenue: z.array(Point).meta({ description: 'Of the currency in which most was earned.' }),
        by_currency: byCurrency(z.array(Point)).meta({ description: 'The same of each currency.' }),
      })
      .meta({ id: 'RevenueDashboardGraph', description: 'What was earned over time, window by window.' }),
    mrr,
    as_of,
  })
  .meta({ id: 'RevenueDashboardResponse' });

export const DashboardRevenuesRequest = z
  .object({
    revenue_trend: z
      .object({
        window_count: orNull(z.int().min(1).max(120)).meta({
          description: 'How many windows, the running one last: 6 when absent.',
        }),
        window_size: orNull(windowSize).meta({ description: 'MONTH when absent.' }),
      })
      .nullish()
      .meta({ description: 'Which windows the trend has.' }),
  })
  .meta({ id: 'DashboardRevenuesRequest', example: { revenue_trend: { window_count: 3 } } });

const RevenueWindow = z
  .object({
    window_start: z.string().meta({ description: 'Where the window begins.' }),
    window_end: z.string().meta({ description: 'Where it ends, which is not in it.' }),
    window_label: z.string().meta({ description: 'The window as people read it.' }),
    total_revenue: decimalText.meta({ description: 'What final invoices charge for what began in it.' }),
  })
  .meta({ id: 'RevenueWindow' });

const lately = {
  period_start: z.string().meta({ description: 'Thirty days before the request.' }),
  period_end: z.string().meta({ description: 'When it was asked.' }),
};

export const DashboardRevenuesAnswer = z
  .object({
    revenue_trend: z
      .object({
        currency_revenue_windows: byCurrency(
          z.object({ windows: z.array(RevenueWindow).meta({ description: 'In order of time, empty ones too.' }) }),
        ).meta({ description: 'By currency.' }),
        window_size: z.enum(WINDOW_SIZES).meta({ description: 'How large the windows are.' }),
        window_count: z.int().meta({ description: 'How many there are.' }),
      })
      .meta({ id: 'RevenueTrendResponse', description: 'Revenue over time.' }),
    mrr,
    recent_subscriptions: z
      .object({
        total_count: z.int().meta({ description: 'How many subscriptions were made.' }),
        plans: z
          .array(
            z.object({
              plan_id: z.string().meta({ description: 'Their plan.' }),
              plan_name: z.string().meta({ description: 'What people call it.' }),
              count: z.int().meta({ description: 'How many are of it.' }),
            }),
          )
          .meta({ description: 'The plan with most of them first.' }),
        ...lately,
      })
      .meta({
        id: 'RecentSubscriptionsResponse',
        description: 'Subscriptions of the last thirty days, without drafts.',
      }),
    invoice_payment_status: z
      .object({
        paid: z.int().meta({ description: 'How many are paid.' }),
        pending: z.int().meta({ description: 'How many are not paid yet.' }),
        failed: z.int().meta({ description: 'Of how many the last payment has failed.' }),
        ...lately,
      })
      .meta({
        id: 'InvoicePaymentStatusResponse',
        description: 'Final invoices that were made in the last thirty days.',
      }),
    as_of,
  })
  .meta({ id: 'DashboardRevenuesResponse' });
