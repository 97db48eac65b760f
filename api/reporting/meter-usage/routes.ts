/** Measured usage of one customer per meter. */
import { z } from 'zod';
import { notFound } from '../../../core/foundation/error.ts';
import { decimalText } from '../../../core/foundation/record.ts';
import { formatUs, toMs } from '../../../core/foundation/time/instant.ts';
import { checkRange } from '../../../core/foundation/time/range.ts';
import { windowCount } from '../../../core/foundation/time/window.ts';
import { derivePointSize } from '../../../core/metering/analytics/point-size.ts';
import { AGGREGATION_TYPES, type AggregationType, aggregationType } from '../../../core/metering/meter/record.ts';
import { BATCH_SIZE_MAX, hasMany, mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import { checkCells, type QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import { mapYielding } from '../../../storage/concurrency/time-slicer.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import type { MeterUsageQuery } from '../../../storage/usage/usage-query.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import {
  anyWindowSize,
  checkBuckets,
  checkWindows,
  instantUs,
  requiredInstantUs,
  usageRange,
  withBounds,
} from '../../metering/usage/query-fields.ts';
import { withAggregationType } from '../../metering/usage/transient-meter.ts';
import { answerAnalytics, GetUsageAnalyticsRequest } from '../usage/analytics.ts';
import { AnalyticsAnswer } from '../usage/analytics-answer.ts';

const tag = 'Meter usage';

const meterUsageFields = {
  external_customer_id: z.string().min(1).meta({ description: 'External id of the customer.' }),
  start_time: requiredInstantUs.meta(usageRange.start_time),
  end_time: requiredInstantUs.meta(usageRange.end_time),
  aggregation_type: aggregationType.meta({
    description:
      'Aggregation of event values to one number. If the meter has a different one, the usage is computed from raw events.',
  }),
  window_size: anyWindowSize,
  billing_anchor: instantUs.meta(usageRange.billing_anchor),
};
type MeterUsageInput = z.output<z.ZodObject<typeof meterUsageFields>>;

const MeterUsageQueryRequest = z
  .object({
    ...meterUsageFields,
    meter_id: z.string().min(1).meta({ description: 'Id of the meter.' }),
  })
  .meta({
    id: 'MeterUsageQueryRequest',
    example: {
      external_customer_id: 'acme',
      meter_id: 'meter_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
      aggregation_type: 'COUNT',
      start_time: '2026-01-30T00:00:00Z',
      end_time: '2026-02-01T00:00:00Z',
      window_size: 'DAY',
    },
  });

const MeterUsageAnalyticsRequest = z
  .object({
    ...meterUsageFields,
    meter_ids: z
      .array(z.string().min(1))
      .min(1)
      .max(1000)
      .meta({ description: 'Ids of the meters, from 1 to 1000, in the order of the answer.' }),
  })
  .meta({
    id: 'MeterUsageAnalyticsRequest',
    example: {
      external_customer_id: 'acme',
      meter_ids: ['meter_01JZ8K3M5N7P9Q1R3S5T7V9W1X'],
      aggregation_type: 'COUNT',
      start_time: '2026-01-30T00:00:00Z',
      end_time: '2026-02-01T00:00:00Z',
      window_size: 'DAY',
    },
  });

const MeterUsageDetailedAnalyticsRequest = GetUsageAnalyticsRequest.extend({
  external_customer_id: z.string().min(1).meta({ description: 'External id of the customer.' }),
}).meta({
  id: 'MeterUsageDetailedAnalyticsRequest',
  example: {
    external_customer_id: 'acme',
    start_time: '2026-01-30T00:00:00Z',
    end_time: '2026-02-01T00:00:00Z',
    window_size: 'DAY',
  },
});

export const MeterUsageAnswer = z
  .object({
    meter_id: z.string(),
    aggregation_type: z.enum(AGGREGATION_TYPES).meta({ description: 'Aggregation of the event values.' }),
    total_value: decimalText.meta({
      description: 'Aggregated value of the whole time range.',
    }),
    event_count: z.int().meta({ description: 'Number of events in the total.' }),
    points: z
      .array(
        z.object({
          timestamp: z.string().meta({ description: 'Start of the window.' }),
          value: decimalText.meta({ description: 'Usage of the window.' }),
          event_count: z.int().meta({ description: 'Number of events in the window.' }),
        }),
      )
      .nullable()
      .meta({ description: 'One point per window that has events, in order; null without `window_size`.' }),
    as_of: z.string().meta({ description: 'Every event accepted before this instant is counted.' }),
    source: z
      .enum(['buckets', 'raw'])
      .meta({ description: 'Source of the numbers: pre-aggregated rows, or raw events only.' }),
  })
  .meta({ id: 'MeterUsageQueryResponse' });

export const meterUsageRoutes: Route[] = [
  route({
    method: 'post',
    path: '/meter-usage/query',
    operation_id: 'queryMeterUsage',
    summary: 'Query usage of one meter',
    description:
      'Returns the usage of one customer in the range, also per window if `window_size` is set. If ' +
      "`aggregation_type` differs from the meter's, the usage is computed from raw events.",
    tag,
    access: 'event:read',
    body: MeterUsageQueryRequest,
    success: 200,
    answer: MeterUsageAnswer,
    async handle({ body }, context) {
      const { scope, services } = context;
      const meter = await MeterModel.fetch(scope, body.meter_id, { database: services.postgres });
      return withBounds(context, (bounds) => measured(meter, body, { context, bounds, count: 1 }));
    },
  }),
  route({
    method: 'post',
    path: '/meter-usage/analytics',
    operation_id: 'getMeterUsageAnalytics',
    summary: 'Query usage of several meters',
    description: 'Returns one item per meter, in the order of `meter_ids`.',
    tag,
    access: 'event:read',
    body: MeterUsageAnalyticsRequest,
    success: 200,
    answer: z
      .object({
        items: z.array(MeterUsageAnswer).meta({ description: 'One item per meter, in the order of the request.' }),
      })
      .meta({ id: 'MeterUsageAnalyticsResponse' }),
    async handle({ body }, context) {
      const meters = await loadMeters(body.meter_ids, context);
      // Every window of every meter counts, because windows without events are computed, too.
      checkCells(meters.length * windowCount({ start_us: body.start_time, end_us: body.end_time }, body.window_size));
      return withBounds(context, async (bounds) => ({
        items: await mapConcurrently(BATCH_SIZE_MAX, meters, (meter) =>
          measured(meter, body, { context, bounds, count: meters.length }),
        ),
      }));
    },
  }),
  route({
    method: 'post',
    path: '/meter-usage/detailed-analytics',
    operation_id: 'getMeterUsageDetailedAnalytics',
    summary: 'Query usage and cost per feature',
    description: 'Returns the analytics of `POST /events/analytics` for one customer, per feature and line item.',
    tag,
    access: 'event:read',
    body: MeterUsageDetailedAnalyticsRequest,
    success: 200,
    answer: AnalyticsAnswer,
    handle: ({ body }, context) => answerAnalytics(body, context),
  }),
];

/** Loads the meters in the order of the request. */
async function loadMeters(ids: readonly string[], { scope, services }: Context): Promise<MeterModel[]> {
  const meters = await MeterModel.byId(scope, ids, services.postgres);
  return [...new Set(ids)].map((id) => {
    const meter = meters.get(id);
    if (!meter) throw notFound('meter', id);
    return meter;
  });
}

async function measured(
  meter: MeterModel,
  body: MeterUsageInput,
  { context, bounds, count }: { context: Context; bounds: QueryBounds; count: number },
) {
  const range = checkRange({ start_us: body.start_time, end_us: body.end_time });
  const definition = definitionFor(meter, body.aggregation_type);
  const { bucket_size } = (definition ?? meter).aggregation;
  checkWindows(range, body.window_size);
  checkBuckets(range, bucket_size, null);
  const query: MeterUsageQuery = {
    meter,
    definition,
    external_customer_ids: [body.external_customer_id],
    ...range,
    window_size: derivePointSize(body.window_size, bucket_size) ?? undefined,
    billing_anchor_ms: body.billing_anchor === null ? undefined : toMs(body.billing_anchor),
    now_ms: context.now.getTime(),
    is_of_many: hasMany(count),
    bounds,
  };
  const report = await readUsageReport(context.services, context.scope, query);
  const { total, windows } = report.usage[0]!;
  return {
    meter_id: meter.id,
    aggregation_type: body.aggregation_type,
    total_value: total.value,
    event_count: total.event_count,
    points: body.window_size
      ? await mapYielding(context.scope.tenant_id, windows, ({ window_us, value, event_count }) => ({
          timestamp: formatUs(window_us),
          value,
          event_count,
        }))
      : null,
    as_of: report.as_of,
    source: report.source,
  };
}

/**
 * Returns the definition for a query with another aggregation, which reads raw events. Undefined for the meter's own aggregation, which
 * reads the meter's rows.
 */
function definitionFor(meter: MeterModel, type: AggregationType) {
  return type === meter.aggregation.type ? undefined : withAggregationType(meter, type);
}
