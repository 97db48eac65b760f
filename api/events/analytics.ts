/** POST /events/analytics: usage and cost of every line item in a range; /meter-usage/detailed-analytics asks the same. */
import { z } from 'zod';
import { loadUsageAnalytics } from '../../actions/usage/usage-analytics.ts';
import { parseGroupBy } from '../../core/analytics/group-by.ts';
import { orNull } from '../../core/record.ts';
import { toMs, toUs, US_PER_HOUR } from '../../core/time/instant.ts';
import { type Context, type Route, route } from '../http/route.ts';
import { AnalyticsAnswer, parseAnalyticsExpand, showAnalytics } from './analytics-answer.ts';
import {
  anyWindowSize,
  checkRange,
  checkWindows,
  instantUs,
  propertyValues,
  usageRange,
  withBounds,
} from './usage-query-fields.ts';

const texts = z.array(z.string()).nullish();

export const GetUsageAnalyticsRequest = z
  .object({
    external_customer_id: orNull(z.string()).meta({
      description: 'Usage of this customer, by the id that its events name; of all customers when none is named.',
    }),
    external_customer_ids: texts.meta({
      description: 'Usage of any of these customers, by the ids that their events name.',
    }),
    feature_ids: texts.meta({ description: 'Line items of any of these features; all when absent or empty.' }),
    meter_ids: texts.meta({ description: 'Line items of any of these meters; all when absent or empty.' }),
    sources: texts.meta({ description: 'Events of any of these sources; all when absent or empty.' }),
    start_time: instantUs.meta({
      description: 'Events at this instant or later; six hours before the end when absent.',
    }),
    end_time: instantUs.meta({ description: 'Events before this instant; until now when absent.' }),
    group_by: texts.meta({
      description:
        'Divides the events of an item: source, properties.<name>, or feature_id, which divides nothing further.',
    }),
    window_size: anyWindowSize,
    expand: texts.meta({
      description:
        'Records to answer with, for who may read them: price, meter, feature, subscription_line_item, plan, addon.',
    }),
    property_filters: propertyValues,
    include_children: z
      .boolean()
      .nullish()
      .meta({ description: 'With those whose parent is one of the customers that are named.' }),
    breakdown_bucket: z.boolean().nullish().meta({
      description:
        'Whether `bucket_summaries`, and `buckets` of points, say what each time of day of a commitment comes to.',
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
    summary: 'Usage and cost per feature and line item',
    description:
      'One item per usage line item, in the part of the range in which it lives. Amounts are exact and not rounded. A point costs what its window added to the running cost, so points add up to the cost of the range; its usage is that of its window alone. Amounts are null for who may not read invoices. The last six hours unless a range is stated.',
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

/** An empty list says as little as none: clients send it for a filter that is not set. */
function listed(list: readonly string[] | null | undefined): readonly string[] | null {
  return list && list.length > 0 ? list : null;
}

/** The last six hours when no range is asked for. */
function toAnalysedRange(input: { start_time: number | null; end_time: number | null }, now: Date) {
  const end_us = input.end_time ?? toUs(now.getTime());
  return checkRange({ start_us: input.start_time ?? end_us - 6 * US_PER_HOUR, end_us });
}
