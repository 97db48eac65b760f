/** Request and answer of cost analytics (docs/rules/costs.md). */
import { z } from 'zod';
import { decimalText, orNull } from '../../../core/foundation/record.ts';
import { REVENUE_PARTS, type RevenuePart } from '../../../core/invoicing/revenue/parts.ts';
import { windowSize } from '../../../core/metering/meter/record.ts';
import { PriceAnswer } from '../../catalog/prices/schema.ts';
import { listShape, Pagination } from '../../http/list.ts';
import { MeterAnswer } from '../../metering/meters/schema.ts';
import { instantUs, propertyValues } from '../../metering/usage/query-fields.ts';

const texts = z.array(z.string()).nullish();
const { limit, offset } = listShape({}).shape;

export const GetCostAnalyticsRequest = z
  .object({
    start_time: instantUs.meta({
      description: 'Start of the range; it requires `end_time`. Default range: the last seven days.',
    }),
    end_time: instantUs.meta({ description: 'Exclusive end of the range; it requires `start_time`.' }),
    external_customer_id: orNull(z.string()).meta({
      description: 'External id of the customer. Default: all customers.',
    }),
    feature_ids: texts.meta({
      description:
        'Features to restrict to: only usage of their meters counts, without fixed charges. If absent or empty, everything counts.',
    }),
    expand: texts.meta({ description: 'Records to include: meter, price. Each needs the permission to read it.' }),
    property_filters: propertyValues,
    group_by: texts.meta({
      description: 'Keys that divide the usage of a customer and meter further: source, properties.<name>.',
    }),
    window_size: orNull(windowSize).meta({
      description: 'Size of the windows of `cost_by_period`, in UTC. Default: DAY.',
    }),
    limit: orNull(limit.unwrap()).meta({ description: 'Maximum number of items, 1 to 1,000. Default: 50.' }),
    offset: orNull(offset.unwrap()).meta({ description: 'Number of items to skip before the page. Default: 0.' }),
    include_children: z
      .boolean()
      .nullish()
      .meta({ description: 'True to include customers whose parent is the named customer. Default: false.' }),
  })
  .meta({
    id: 'GetCostAnalyticsRequest',
    example: {
      external_customer_id: 'acme',
      start_time: '2026-01-30T00:00:00Z',
      end_time: '2026-02-01T00:00:00Z',
      expand: ['meter', 'price'],
    },
  });

const CostPoint = z
  .object({
    timestamp: z.string().meta({ description: 'Start of the window.' }),
    cost: decimalText.meta({
      description: 'Exact cost that the window added. Points add up to the cost of the item.',
    }),
    quantity: decimalText.meta({ description: 'Quantity of the window alone.' }),
    event_count: z.int().meta({ description: 'Number of events in the window.' }),
  })
  .meta({ id: 'CostPoint' });

const text = (description: string) => z.string().nullable().meta({ description });

const CostAnalyticItem = z
  .object({
    meter_id: text('Meter whose usage has this cost; null for a FIXED price, which is independent of usage.'),
    meter_name: text('Name of the meter; null for a FIXED price.'),
    source: text('Source of the events if `group_by` names source; null otherwise.'),
    customer_id: text('Customer of the usage; null if there is no customer with the external id of the events.'),
    external_customer_id: text('External id from the events; null for a FIXED price.'),
    properties: z
      .record(z.string(), z.string())
      .nullable()
      .meta({ description: 'Values of the properties in `group_by`, by name; null if it names no property.' }),
    total_cost: decimalText.meta({ description: 'Cost by the price of the cost sheet, not rounded.' }),
    total_quantity: decimalText.meta({
      description: 'Usage of the meter in the range; for a FIXED price its periods in the range, times its units.',
    }),
    total_events: z.int().meta({ description: 'Number of events in the usage.' }),
    cost_by_period: z.array(CostPoint).nullable().meta({
      description: 'Windows with events, or for a FIXED price the windows in which it applies, in order of time.',
    }),
    currency: z.string().meta({ description: 'Currency of the price.' }),
    price_id: text('Price of the cost sheet.'),
    costsheet_id: text('Active cost sheet.'),
    total_revenue: decimalText.nullable().meta({
      description:
        'Revenue of the customer’s usage of the meter, in this currency; null with `group_by`, and for a FIXED price.',
    }),
    margin: decimalText.nullable().meta({ description: 'Revenue less cost; null if `total_revenue` is null.' }),
    meter: MeterAnswer.nullable().meta({ description: 'Meter, if `expand` names it; null otherwise.' }),
    price: PriceAnswer.nullable().meta({ description: 'Price, if `expand` names it; null otherwise.' }),
  })
  .meta({ id: 'CostAnalyticItem' });

const MEANING: Readonly<Record<RevenuePart, string>> = {
  usage: 'Revenue from usage.',
  fixed: 'Revenue from fixed and one-time charges, and from shortfalls of commitments.',
  finalized: 'Revenue on final invoices.',
  drafts: 'Revenue on draft invoices, which are computed again before they are final.',
  open: 'Revenue that is not on an invoice yet.',
  minimums: 'Shortfall of commitments if running periods ended now. It is not revenue yet.',
  discounts: 'Coupon discounts on the invoices. The revenue is before them.',
  credits: 'Prepaid credits applied to the invoices. The revenue is before them.',
  taxes: 'Taxes on the invoices. The revenue is without them.',
};

const RevenueParts = z
  .object(
    Object.fromEntries(REVENUE_PARTS.map((part) => [part, decimalText.meta({ description: MEANING[part] })])) as Record<
      RevenuePart,
      typeof decimalText
    >,
  )
  .meta({ id: 'RevenueParts' });

const Figures = {
  total_revenue: decimalText.meta({ description: 'Revenue from usage and fixed charges of the range.' }),
  total_cost: decimalText.meta({
    description: 'Cost of the range by the cost sheet: the sum of all items.',
  }),
  margin: decimalText.meta({ description: 'total_revenue − total_cost.' }),
  margin_percent: decimalText.meta({ description: 'margin ÷ total_revenue × 100; 0 if the revenue is 0.' }),
  roi: decimalText.meta({ description: 'margin ÷ total_cost; 0 if the cost is 0.' }),
  roi_percent: decimalText.meta({ description: 'roi × 100; 0 if the cost is 0.' }),
  currency: z.string().meta({
    description: 'Currency code (ISO 4217), in lower case; empty without revenue and cost.',
  }),
  revenue_parts: RevenueParts.meta({ description: 'Parts of the revenue, and the differences to the invoices.' }),
};

export const CostAnalyticsAnswer = z
  .object({
    cost_analytics: z.array(CostAnalyticItem).meta({
      description: 'Page of items: one per customer, meter and group, and one per FIXED price, the highest cost first.',
    }),
    ...Figures,
    totals: z
      .array(z.object(Figures))
      .meta({ description: 'Figures per currency. The figures outside this list are those of the first currency.' }),
    costsheet_id: text('Active cost sheet; null without one, in which case every cost is 0.'),
    start_time: z.string().meta({ description: 'Start of the range.' }),
    end_time: z.string().meta({ description: 'Exclusive end of the range.' }),
    as_of: z.string().meta({ description: 'Instant before which every accepted event is counted.' }),
    pagination: Pagination.meta({ description: 'Position of the page among all items.' }),
  })
  .meta({ id: 'GetDetailedCostAnalyticsResponse' });
