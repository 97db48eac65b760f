/** Request and answer of cost analytics (docs/rules/costs.md). */
import { z } from 'zod';
import { windowSize } from '../../core/meter/record.ts';
import { decimalText, orNull } from '../../core/record.ts';
import { REVENUE_PARTS, type RevenuePart } from '../../core/revenue/parts.ts';
import { instantUs, propertyValues } from '../events/usage-query-fields.ts';
import { listShape, Pagination } from '../http/list.ts';
import { MeterAnswer } from '../meters/schema.ts';
import { PriceAnswer } from '../prices/schema.ts';

const texts = z.array(z.string()).nullish();
const { limit, offset } = listShape({}).shape;

export const GetCostAnalyticsRequest = z
  .object({
    start_time: instantUs.meta({
      description: 'From this instant on; together with `end_time` or not at all: without them the last seven days.',
    }),
    end_time: instantUs.meta({ description: 'Until before this instant.' }),
    external_customer_id: orNull(z.string()).meta({
      description: 'Of this customer alone, by the id that its events name; of all when absent.',
    }),
    feature_ids: texts.meta({
      description: 'Usage of the meters of these features alone, and no fixed charges; all when absent or empty.',
    }),
    expand: texts.meta({ description: 'Records to answer with, for who may read them: meter, price.' }),
    property_filters: propertyValues,
    group_by: texts.meta({
      description: 'Divides the usage of a customer and meter further: source, properties.<name>.',
    }),
    window_size: orNull(windowSize).meta({ description: 'Of `cost_by_period`: DAY when absent, on the clock of UTC.' }),
    limit: orNull(limit.unwrap()).meta({ description: 'How many items are answered at most: 50 when absent.' }),
    offset: orNull(offset.unwrap()).meta({ description: 'How many items to leave out before them.' }),
    include_children: z
      .boolean()
      .nullish()
      .meta({ description: 'With those whose parent is the customer that is named.' }),
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
    timestamp: z.string().meta({ description: 'Where the window begins.' }),
    cost: decimalText.meta({
      description: 'Cost that the window added, exact; points add up to the cost of the item.',
    }),
    quantity: decimalText.meta({ description: 'Quantity of the window by itself.' }),
    event_count: z.int().meta({ description: 'How many events are in it.' }),
  })
  .meta({ id: 'CostPoint' });

const text = (description: string) => z.string().nullable().meta({ description });

const CostAnalyticItem = z
  .object({
    meter_id: text('The meter whose usage costs this; null of a FIXED price, which is of nobody’s usage.'),
    meter_name: text('What people call it.'),
    source: text('With `group_by` source, where the events came from; else null.'),
    customer_id: text('The customer who used it; null where the events name nobody who is one.'),
    external_customer_id: text('As the events name who used it; null of a FIXED price.'),
    properties: z
      .record(z.string(), z.string())
      .nullable()
      .meta({ description: 'With `group_by` properties.<name>, their values; else null.' }),
    total_cost: decimalText.meta({ description: 'By the price of the cost sheet, not rounded.' }),
    total_quantity: decimalText.meta({
      description: 'What the meter measured in the range; of a FIXED price its periods in it, times their units.',
    }),
    total_events: z.int().meta({ description: 'How many events are in it.' }),
    cost_by_period: z
      .array(CostPoint)
      .nullable()
      .meta({ description: 'Windows with events, or of a FIXED price those in which it holds, in order of time.' }),
    currency: z.string().meta({ description: 'Of the price.' }),
    price_id: text('The price of the cost sheet.'),
    costsheet_id: text('The cost sheet that was active.'),
    total_revenue: decimalText.nullable().meta({
      description:
        'Of the usage of this meter by this customer, in this currency; null with `group_by`, and of a FIXED price.',
    }),
    margin: decimalText.nullable().meta({ description: 'The revenue less the cost; null where that is.' }),
    meter: MeterAnswer.nullable().meta({ description: 'Where `expand` names it.' }),
    price: PriceAnswer.nullable().meta({ description: 'Where `expand` names it.' }),
  })
  .meta({ id: 'CostAnalyticItem' });

const MEANING: Readonly<Record<RevenuePart, string>> = {
  usage: 'Of it what usage is charged.',
  fixed: 'Of it what is charged for what is there: fixed and one-time charges, and what was lacking to commitments.',
  finalized: 'Of it what stands on final invoices.',
  drafts: 'Of it what stands on drafts, which are computed once more.',
  open: 'Of it what stands on no invoice yet.',
  minimums: 'Not in it yet: what would be lacking to commitments if running periods ended as they are now.',
  discounts: 'What coupons take off on the invoices: the revenue is before them.',
  credits: 'What prepaid credits paid on the invoices: the revenue is before them.',
  taxes: 'What taxes add on the invoices: the revenue is without them.',
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
  total_revenue: decimalText.meta({ description: 'What usage and fixed charges of the range come to.' }),
  total_cost: decimalText.meta({
    description: 'What the range costs by the cost sheet: the sum of all items.',
  }),
  margin: decimalText.meta({ description: 'total_revenue − total_cost.' }),
  margin_percent: decimalText.meta({ description: 'margin ÷ total_revenue × 100; 0 where the revenue is 0.' }),
  roi: decimalText.meta({ description: 'margin ÷ total_cost; 0 where the cost is 0.' }),
  roi_percent: decimalText.meta({ description: 'roi × 100; 0 where the cost is 0.' }),
  currency: z.string().meta({
    description: 'As ISO 4217 has it, in small letters; empty where nothing was earned and nothing cost anything.',
  }),
  revenue_parts: RevenueParts.meta({ description: 'What the revenue is, and what lies between it and the invoices.' }),
};

export const CostAnalyticsAnswer = z
  .object({
    cost_analytics: z.array(CostAnalyticItem).meta({
      description:
        'One for each customer, meter and group, and for each FIXED price, the dearest first: a page of them.',
    }),
    ...Figures,
    totals: z
      .array(z.object(Figures))
      .meta({ description: 'One for each currency; the figures beside are those of the first.' }),
    costsheet_id: text('The active cost sheet; null where there is none, and then nothing costs anything.'),
    start_time: z.string().meta({ description: 'The start of the range that was answered.' }),
    end_time: z.string().meta({ description: 'The end of the range that was answered, which is not in it.' }),
    as_of: z.string().meta({ description: 'Every event that was accepted before this instant is counted.' }),
    pagination: Pagination.meta({ description: 'Where the items stand among all of them.' }),
  })
  .meta({ id: 'GetDetailedCostAnalyticsResponse' });
