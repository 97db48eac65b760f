/** POST /events/usage (a question without a meter) and POST /events/usage/meter: one number, and its windows when asked. */
import { z } from 'zod';
import { derivePointSize } from '../../core/analytics/point-size.ts';
import { compilePropertyFilters } from '../../core/analytics/property-filter.ts';
import { invalid } from '../../core/error.ts';
import type { Meter } from '../../core/meter/record.ts';
import { AGGREGATION_TYPES, aggregationType, windowSize } from '../../core/meter/record.ts';
import { AGGREGATIONS } from '../../core/metering/aggregations/index.ts';
import { rowStart } from '../../core/metering/bucket-size.ts';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import { decimalText, orNull } from '../../core/record.ts';
import { formatUs, toMs, US_PER_DAY } from '../../core/time/instant.ts';
import { findFirstEventTime } from '../../storage/events/event-names.ts';
import { MeterModel } from '../../storage/models/meter.ts';
import { mapYielding } from '../../storage/time-slicer.ts';
import { readUsageReport } from '../../storage/usage/usage.ts';
import type { MeterUsageQuery } from '../../storage/usage/usage-query.ts';
import { type Context, type Route, route } from '../http/route.ts';
import { buildTransientMeter, findEquivalentMeter } from './transient-meter.ts';
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
} from './usage-query-fields.ts';

const usageQueryFields = {
  external_customer_id: orNull(z.string()).meta({
    description: 'Usage of this customer, by the id that its events name; of all customers when absent.',
  }),
  customer_id: orNull(z.string()).meta({
    description: 'The same by the id of the customer; with both they must be of one.',
  }),
  start_time: instantUs.meta({ description: 'Events at this instant or later; from the beginning when absent.' }),
  end_time: instantUs.meta({ description: 'Events before this instant; until now when absent.' }),
  window_size: anyWindowSize,
  bucket_size: orNull(windowSize).meta({
    description: 'Of SUM and MAX: aggregated window by window, and the total is the sum of the windows.',
  }),
  filters: propertyValues.meta({
    description: 'Further properties, and of each the values that pass: all of them must.',
  }),
  billing_anchor: instantUs.meta(usageRange.billing_anchor),
  timezone: anyTimezone,
};
type EventUsageQuery = z.output<z.ZodObject<typeof usageQueryFields>>;

const GetUsageRequest = z
  .object({
    ...usageQueryFields,
    event_name: z.string().meta({ description: 'The name of the events, trimmed of blanks at both ends.' }),
    aggregation_type: aggregationType.meta({ description: 'How the values of the events become one number.' }),
    property_name: orNull(z.string()).meta({
      description: 'The property that holds the value; all but COUNT need it, or an expression.',
    }),
    multiplier: orNull(decimalText).meta({ description: 'Of SUM_WITH_MULTIPLIER alone: greater than 0.' }),
    group_by_property: orNull(z.string()).meta({
      description: 'Of MAX with a bucket_size: each value of this property has a maximum of its own, and they add up.',
    }),
    group_by: z.array(z.string()).nullish().meta({ description: 'The same as `group_by_property`, as a list of one.' }),
    expression: orNull(z.string()).meta({
      description: 'CEL over properties, in the place of the property; a missing property is 0.',
    }),
  })
  .meta({ id: 'GetUsageRequest' });

const GetUsageByMeterRequest = z
  .object({
    ...usageQueryFields,
    meter_id: z.string().min(1).meta({ description: 'The meter whose aggregation and filters count.' }),
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

const UsageAnswer = z
  .object({
    results: z
      .array(
        z.object({
          window_size: z.string().meta({ description: 'Where the window begins.', format: 'date-time' }),
          value: decimalText.meta({ description: 'The usage of the window.' }),
        }),
      )
      .nullable()
      .meta({ description: 'One for each window that has events, in their order; null without a `window_size`.' }),
    value: decimalText.meta({ description: 'The usage of the whole range, in the unit that the aggregation gives.' }),
    event_name: z.string().meta({ description: 'The name of the events that were counted.' }),
    type: z.enum(AGGREGATION_TYPES).meta({ description: 'How the values of the events became one number.' }),
    event_count: z.int().meta({ description: 'How many events are in the number.' }),
    as_of: z.string().meta({ description: 'Every event that was accepted before this instant is counted.' }),
    source: z.enum(['buckets', 'raw']).meta({ description: 'Pre-aggregated rows, or raw events alone.' }),
  })
  .meta({ id: 'GetUsageResponse' });

export const usageRoutes: Route[] = [
  route({
    method: 'post',
    path: '/events/usage',
    operation_id: 'getUsageStatistics',
    summary: 'Aggregate the usage of an event name',
    description:
      'By an aggregation that the request states, without a meter. Where a meter counts alike its rows answer, and else the raw events; the number is the same.',
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
    summary: 'Aggregate usage through a meter',
    description: 'By the aggregation and the filters of the meter; further filters and customers narrow it.',
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

/** The client knows one property to group by; the interface a list. */
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
    source: report.from,
  };
}

/** Without a start, windows are cut from the day of the first event on, and not from the beginning of time. */
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
