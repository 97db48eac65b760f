/** POST /events/analytics: usage and cost of every line item in a range. /meter-usage/detailed-analytics uses the same code. */
import { z } from 'zod';
import { loadUsageAnalytics } from '../../../actions/reporting/usage/usage-analytics.ts';
import { orNull } from '../../../core/foundation/record.ts';
import { toMs, toUs, US_PER_HOUR } from '../../../core/foundation/time/instant.ts';
import { checkRange } from '../../../core/foundation/time/range.ts';
import { parseGroupBy } from '../../../core/metering/analytics/group-by.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import {
  anyWindowSize,
  checkWindows,
  instantUs,
  propertyValues,
  usageRange,
  withBounds,
} from '../../metering/usage/query-fields.ts';
import { AnalyticsAnswer, parseAnalyticsExpand, showAnalytics } from './analytics-answer.ts';

const texts = z.array(z.string()).nullish();

export const GetUsageAnalyticsRequest = z
  .object({
    external_customer_id: orNull(z.string()).meta({
      description: 'External id of the customer. Default: all customers.',
    }),
    external_customer_ids: texts.meta({
      description: 'External ids of customers, in addition to `external_customer_id`.',
    }),
    feature_ids: texts.meta({ description: 'Features of the line items; all if absent or empty.' }),
    meter_ids: texts.meta({ description: 'Meters of the line items; all if absent or empty.' }),
    sources: texts.meta({ description: 'Sources of the events; all if absent or empty.' }),
    start_time: instantUs.meta({
      description: 'Earliest instant of the events, inclusive. Default: six hours before the end.',
    }),
    end_time: instantUs.meta({ description: 'Exclusive end of the events. Default: now.' }),
    group_by: texts.meta({
      description:
        'Keys that divide the events of an item: source, properties.<name>, or feature_id, which divides nothing further.',
    }),
    window_size: anyWindowSize,
    expand: texts.meta({
      description:
        'Records to include: price, meter, feature, subscription_line_item, plan, addon. Each needs the permission to read it.',
    }),
    property_filters: propertyValues,
    include_children: z
      .boolean()
      .nullish()
      .meta({ description: 'True to include customers whose parent is one of the named customers. Default: false.' }),
    breakdown_bucket: z.boolean().nullish().meta({
      description:
        'True to fill `bucket_summaries`, and `buckets` of points, for each time of day of a commitment. Default: false.',
    }),
    billing_anchor: instantUs.meta(usageRange.billing_anchor),
  })
  .meta({
    id: 'GetUsageAnalyticsRequest',
    example: {
      external_customer_id: 'acme',
      start_time: '2026-01-30T00:00:00Z',
      end_time: '2026-02-01T00:00:00Z',
      window_size: 'DAY',
      expand: ['meter', 'price'],
    },
  });

export const analyticsRoutes: Route[] = [
  route({
    method: 'post',
    path: '/events/analytics',
    operation_id: 'getUsageAnalytics',
    summary: 'Get usage and cost analytics',
    description:
      'Returns one item per usage line item, for the part of the range in which it is active. Amounts are exact and not rounded, and null without the permission to read invoices. The cost of a point is the amount that its window added to the running cost, so points add up to the cost of the range. The usage of a point is that of its window alone. Default range: the last six hours.',
    tag: 'Events',
    access: 'event:read',
    body: GetUsageAnalyticsRequest,
    success: 200,
    answer: AnalyticsAnswer,
    handle: ({ body }, context) => answerAnalytics(body, context),
  }),
];

export async function answerAnalytics(body: z.output<typeof GetUsageAnalyticsRequest>, context: Context) {
  const expand = parseAnalyticsExpand(body.expand, context.principal);
  const group_by = parseGroupBy(body.group_by ?? []);
  const range = toAnalysedRange(body, context.now);
  checkWindows(range, body.window_size);
  const named = [
    ...(body.external_customer_ids ?? []),
    ...(body.external_customer_id ? [body.external_customer_id] : []),
  ];
  const query = {
    external_customer_ids: named.length > 0 ? [...new Set(named)] : null,
    include_children: body.include_children ?? false,
    by_time_of_day: body.breakdown_bucket ?? false,
    feature_ids: listed(body.feature_ids),
    meter_ids: listed(body.meter_ids),
    sources: listed(body.sources),
    property_filters: body.property_filters,
    group_by,
    window_size: body.window_size,
    billing_anchor_ms: body.billing_anchor === null ? null : toMs(body.billing_anchor),
    ...range,
    now: context.now,
  };
  const { rows, as_of } = await withBounds(context, (bounds) =>
    loadUsageAnalytics(context.services, context.scope, { ...query, bounds }),
  );
  return showAnalytics(rows, { expand, as_of, ...range }, context);
}

/** An empty list counts as absent: clients send it for a filter that is not set. */
function listed(list: readonly string[] | null | undefined): readonly string[] | null {
  return list && list.length > 0 ? list : null;
}

/** Default range: the last six hours. */
function toAnalysedRange(input: { start_time: number | null; end_time: number | null }, now: Date) {
  const end_us = input.end_time ?? toUs(now.getTime());
  return checkRange({ start_us: input.start_time ?? end_us - 6 * US_PER_HOUR, end_us });
}
