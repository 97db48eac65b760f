/** POST /events/usage (a query without a meter) and POST /events/usage/meter: one number, and its windows if requested. */
import { z } from 'zod';
import { invalid } from '../../../core/foundation/error.ts';
import { decimalText, orNull } from '../../../core/foundation/record.ts';
import { formatUs, toMs, US_PER_DAY } from '../../../core/foundation/time/instant.ts';
import { AGGREGATIONS } from '../../../core/metering/aggregations/index.ts';
import { formatTypesTaking, formatTypesWithoutValue } from '../../../core/metering/aggregations/list-types.ts';
import { derivePointSize } from '../../../core/metering/analytics/point-size.ts';
import { compilePropertyFilters } from '../../../core/metering/analytics/property-filter.ts';
import { rowStart } from '../../../core/metering/bucket-size.ts';
import type { Meter } from '../../../core/metering/meter/record.ts';
import { AGGREGATION_TYPES, aggregationType, windowSize } from '../../../core/metering/meter/record.ts';
import type { MeterDefinition } from '../../../core/metering/meter-definition.ts';
import { mapYielding } from '../../../storage/concurrency/time-slicer.ts';
import { findFirstEventTime } from '../../../storage/events/event-names.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import type { MeterUsageQuery } from '../../../storage/usage/usage-query.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import {
  anyTimezone,
  anyWindowSize,
  checkBuckets,
  checkWindows,
  instantUs,
  loadRequestedCustomers,
  propertyValues,
  toRequestedRange,
  usageRange,
  withBounds,
} from './query-fields.ts';
import { buildTransientMeter, findEquivalentMeter } from './transient-meter.ts';

const usageQueryFields = {
  external_customer_id: orNull(z.string()).meta({
    description: 'External id of the customer. Default: all customers.',
  }),
  customer_id: orNull(z.string()).meta({
    description: 'Id of the customer. An `external_customer_id` of another customer is refused.',
  }),
  start_time: instantUs.meta({ description: 'Earliest instant of the events, inclusive. Default: no bound.' }),
  end_time: instantUs.meta({ description: 'Exclusive end of the events. Default: now.' }),
  window_size: anyWindowSize,
  bucket_size: orNull(windowSize).meta({
    description: `Size of buckets, for ${formatTypesTaking('bucket_size')} only. Each bucket is aggregated separately, and the total is the sum of the buckets.`,
  }),
  filters: propertyValues.meta({
    description: 'Further accepted values by property name; all properties must match.',
  }),
  billing_anchor: instantUs.meta(usageRange.billing_anchor),
  timezone: anyTimezone,
};
type EventUsageQuery = z.output<z.ZodObject<typeof usageQueryFields>>;

const GetUsageRequest = z
  .object({
    ...usageQueryFields,
    event_name: z.string().meta({ description: 'Name of the events. Blanks at both ends are removed.' }),
    aggregation_type: aggregationType.meta({ description: 'Aggregation of the values of the events.' }),
    property_name: orNull(z.string()).meta({
      description: `Property with the value. All types except ${formatTypesWithoutValue()} need it, or an expression.`,
    }),
    multiplier: orNull(decimalText).meta({
      description: `Number by which the sum is multiplied, greater than 0. Only for ${formatTypesTaking('multiplier')}.`,
    }),
    group_by_property: orNull(z.string()).meta({
      description: `Property to group by, for ${formatTypesTaking('group_by')} with a bucket_size only. Each of its values has its own maximum, and these add up.`,
    }),
    group_by: z
      .array(z.string())
      .nullish()
      .meta({ description: 'List form of `group_by_property`, with at most one entry.' }),
    expression: orNull(z.string()).meta({
      description: 'CEL expression over properties, instead of `property_name`. A missing property is 0.',
    }),
  })
  .meta({ id: 'GetUsageRequest' });

const GetUsageByMeterRequest = z
  .object({
    ...usageQueryFields,
    meter_id: z.string().min(1).meta({ description: 'Meter whose aggregation and filters apply.' }),
  })
  .meta({
    id: 'GetUsageByMeterRequest',
    example: {
      meter_id: 'meter_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
      external_customer_id: 'acme',
      start_time: '2026-01-30T00:00:00Z',
      end_time: '2026-02-01T00:00:00Z',
      window_size: 'DAY',
    },
  });

export const UsageAnswer = z
  .object({
    results: z
      .array(
        z.object({
          window_size: z.string().meta({ description: 'Start of the window.', format: 'date-time' }),
          value: decimalText.meta({ description: 'Usage of the window.' }),
        }),
      )
      .nullable()
      .meta({ description: 'Windows with events, in order of time; null without a `window_size`.' }),
    value: decimalText.meta({ description: 'Usage of the whole range, in the unit of the aggregation.' }),
    event_name: z.string().meta({ description: 'Name of the counted events.' }),
    type: z.enum(AGGREGATION_TYPES).meta({ description: 'Aggregation of the values of the events.' }),
    event_count: z.int().meta({ description: 'Number of counted events.' }),
    as_of: z.string().meta({ description: 'Instant before which every accepted event is counted.' }),
    source: z
      .enum(['buckets', 'raw'])
      .meta({ description: 'Origin of the number: pre-aggregated rows (`buckets`), or raw events only (`raw`).' }),
  })
  .meta({ id: 'GetUsageResponse' });

export const usageRoutes: Route[] = [
  route({
    method: 'post',
    path: '/events/usage',
    operation_id: 'getUsageStatistics',
    summary: 'Aggregate events without a meter',
    description:
      'Aggregates the events of one name as the request defines. If a meter has the same definition, its pre-aggregated rows are read, otherwise the raw events. The result is the same.',
    tag: 'Events',
    access: 'event:read',
    body: GetUsageRequest,
    success: 200,
    answer: UsageAnswer,
    example: { body: { event_name: 'api_call', aggregation_type: 'SUM', property_name: 'tokens', window_size: 'DAY' } },
    async handle({ body }, context) {
      const definition = buildTransientMeter({ ...body, group_by: pickGroupProperty(body) });
      const meter = await findEquivalentMeter(definition, context);
      const counted = meter ? { meter } : { meter: { id: definition.id }, definition };
      return answerUsage(counted, { ...body, filters: null, definition }, context);
    },
  }),
  route({
    method: 'post',
    path: '/events/usage/meter',
    operation_id: 'getUsageByMeter',
    summary: 'Aggregate usage by a meter',
    description:
      'Applies the aggregation and the filters of the meter. Further filters and customers narrow the usage.',
    tag: 'Events',
    access: 'event:read',
    body: GetUsageByMeterRequest,
    success: 200,
    answer: UsageAnswer,
    async handle({ body }, context) {
      const { scope, services } = context;
      const meter = await MeterModel.fetch(scope, body.meter_id, { database: services.postgres });
      const definition = withBuckets(meter, body.bucket_size);
      const changed = body.bucket_size && body.bucket_size !== meter.aggregation.bucket_size;
      return answerUsage(changed ? { meter, definition } : { meter }, { ...body, definition }, context);
    },
  }),
];

/** The published client sends one property to group by, the interface has a list. */
function pickGroupProperty({ group_by, group_by_property }: z.output<typeof GetUsageRequest>): string | null {
  const names = [...new Set([...(group_by ?? []), ...(group_by_property ? [group_by_property] : [])])];
  if (names.length > 1) throw invalid('group_by', 'takes one property');
  return names[0] ?? null;
}

function withBuckets(meter: Meter, bucket_size: EventUsageQuery['bucket_size']): MeterDefinition {
  const { id, event_name, filters, aggregation, reset_usage } = meter;
  if (!bucket_size) return { id, event_name, filters, aggregation, reset_usage };
  const { type, field, expression, multiplier, group_by } = aggregation;
  const changed = { event_name, aggregation_type: type, property_name: field, expression, multiplier, group_by };
  return { ...buildTransientMeter({ ...changed, bucket_size, filters: null }), id, filters };
}

async function answerUsage(
  counted: Pick<MeterUsageQuery, 'meter' | 'definition'>,
  body: EventUsageQuery & { definition: MeterDefinition },
  context: Context,
) {
  const { event_name, aggregation } = body.definition;
  if (AGGREGATIONS[aggregation.type].needs_range && (body.start_time === null || body.end_time === null))
    throw invalid(
      body.start_time === null ? 'start_time' : 'end_time',
      `is required: ${aggregation.type} depends on the range`,
    );
  const external_customer_ids = await loadRequestedCustomers(body, context);
  const range = await rangeToCut(body, external_customer_ids, context);
  checkWindows(range, body.window_size);
  checkBuckets(range, aggregation.bucket_size, body.timezone);
  const query: MeterUsageQuery = {
    ...counted,
    ...range,
    external_customer_ids,
    window_size: derivePointSize(body.window_size, aggregation.bucket_size) ?? undefined,
    timezone: body.timezone ?? undefined,
    billing_anchor_ms: body.billing_anchor === null ? undefined : toMs(body.billing_anchor),
    only: body.filters ? { passes: compilePropertyFilters(body.filters) } : undefined,
    now_ms: context.now.getTime(),
  };
  const report = await withBounds(context, (bounds) =>
    readUsageReport(context.services, context.scope, { ...query, bounds }),
  );
  const { total, windows } = report.usage[0]!;
  return {
    results: body.window_size
      ? await mapYielding(context.scope.tenant_id, windows, ({ window_us, value }) => ({
          window_size: formatUs(window_us),
          value,
        }))
      : null,
    value: total.value,
    event_name: event_name.trim(),
    type: aggregation.type,
    event_count: total.event_count,
    as_of: report.as_of,
    source: report.source,
  };
}

/** Range to divide into windows. Without a start, it begins on the day of the first event, and not at the earliest possible timestamp. */
async function rangeToCut(
  body: EventUsageQuery & { definition: MeterDefinition },
  external_customer_ids: string[] | null,
  { services, scope, now }: Context,
) {
  const range = toRequestedRange(body, now);
  const { event_name, aggregation } = body.definition;
  if (body.start_time !== null || !(body.window_size || aggregation.bucket_size)) return range;
  const first = await findFirstEventTime(services.clickhouse, scope, {
    event_name: event_name.trim(),
    external_customer_ids,
  });
  const start_us = first === null || first >= range.end_us ? range.end_us - US_PER_DAY : rowStart(first, 'DAY');
  return { ...range, start_us };
}
