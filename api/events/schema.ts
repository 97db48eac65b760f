/** Requests and answers of ingestion and of the questions about events. */
import { z } from 'zod';
import { EVENTS_PER_REQUEST_MAX } from '../../core/event/accept.ts';

const EVENT_EXAMPLE = {
  event_name: 'api_call',
  event_id: 'call-1',
  external_customer_id: 'acme',
  timestamp: '2026-01-31T10:00:00Z',
  properties: { tokens: 128, region: 'eu' },
};
const SECOND_EVENT_EXAMPLE = { ...EVENT_EXAMPLE, event_id: 'call-2', timestamp: '2026-01-31T10:00:01Z' };
const THIRD_EVENT_EXAMPLE = { ...EVENT_EXAMPLE, event_id: 'call-3', timestamp: '2026-01-31T10:00:02Z' };

export const IngestEventRequest = z
  .object({
    event_name: z.string().min(1).meta({ description: 'Trimmed of leading and trailing white space.' }),
    event_id: z
      .string()
      .optional()
      .meta({ description: 'The idempotency key, for the life of the data; made by us when absent.' }),
    external_customer_id: z
      .string()
      .min(1)
      .meta({ description: 'Whose usage it is; the customer need not exist yet.' }),
    customer_id: z
      .string()
      .optional()
      .meta({ description: 'Kept with the event; whose usage it is, `external_customer_id` says.' }),
    timestamp: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({ description: 'When it happened; the time of receipt when absent.' }),
    source: z.string().optional().meta({ description: 'Where it comes from, to tell usage apart by.' }),
    properties: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: 'What meters read; numbers keep their digits.' }),
  })
  .meta({
    id: 'IngestEventRequest',
    example: EVENT_EXAMPLE,
  });

export const BulkIngestEventRequest = z
  .object({
    events: z
      .array(IngestEventRequest)
      .min(1)
      .max(EVENTS_PER_REQUEST_MAX)
      .meta({ description: `From 1 to ${EVENTS_PER_REQUEST_MAX} events.` }),
  })
  .meta({
    id: 'BulkIngestEventRequest',
    example: {
      events: [EVENT_EXAMPLE, SECOND_EVENT_EXAMPLE],
    },
  });

export const BulkIngestRawEventRequest = z
  .object({
    events: z
      .array(z.record(z.string(), z.unknown()))
      .min(1)
      .max(EVENTS_PER_REQUEST_MAX)
      .meta({ description: `From 1 to ${EVENTS_PER_REQUEST_MAX} JSON objects.` }),
  })
  .meta({
    id: 'BulkIngestRawEventRequest',
    example: {
      events: [THIRD_EVENT_EXAMPLE],
    },
  });

/** With other ids than the events above: the documentation sends both. */
export const CLOUD_EVENT_EXAMPLE = {
  specversion: '1.0',
  id: 'call-4',
  source: '/gateways/1',
  type: 'api_call',
  subject: 'acme',
  time: '2026-01-31T10:00:03Z',
  datacontenttype: 'application/json',
  data: { tokens: 128, region: 'eu' },
};

/** What the documentation shows of it; core/event/cloud-event.ts says what is taken. */
export const CloudEventRequest = z
  .object({
    specversion: z.literal('1.0').meta({ description: 'The version of CloudEvents.' }),
    id: z.string().min(1).meta({ description: 'With `source` the idempotency key, for the life of the data.' }),
    source: z.string().min(1).meta({ description: 'A URI reference: where it comes from. Becomes `source`.' }),
    type: z.string().min(1).meta({ description: 'Becomes `event_name`.' }),
    subject: z.string().min(1).meta({ description: 'Whose usage it is. Becomes `external_customer_id`.' }),
    time: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({ description: 'When it happened; the time of receipt when absent. Becomes `timestamp`.' }),
    datacontenttype: z.string().optional().meta({ description: 'JSON, where it is stated.' }),
    dataschema: z.string().optional().meta({ description: 'Has no effect.' }),
    data: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: 'What meters read; numbers keep their digits. Becomes `properties`.' }),
  })
  .meta({ id: 'CloudEvent' });

export const CloudEventBatchRequest = z
  .array(CloudEventRequest)
  .min(1)
  .max(EVENTS_PER_REQUEST_MAX)
  .meta({ id: 'CloudEventBatch', description: `From 1 to ${EVENTS_PER_REQUEST_MAX} CloudEvents.` });

export const OTLP_EXAMPLE = {
  resourceMetrics: [
    {
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'gateway' } }] },
      scopeMetrics: [
        {
          scope: { name: 'gateway' },
          metrics: [
            {
              name: 'gateway.requests',
              sum: {
                aggregationTemporality: 1,
                isMonotonic: true,
                dataPoints: [
                  {
                    attributes: [
                      { key: 'external_customer_id', value: { stringValue: 'acme' } },
                      { key: 'region', value: { stringValue: 'eu' } },
                    ],
                    startTimeUnixNano: '1769853600000000000',
                    timeUnixNano: '1769853660000000000',
                    asInt: '12',
                  },
                ],
              },
            },
          ],
        },
      ],
    },
  ],
};

/** What the documentation shows of it; core/event/otlp-metrics.ts says what is taken. */
export const OtlpMetricsRequest = z
  .object({
    resourceMetrics: z
      .array(z.record(z.string(), z.unknown()))
      .nullish()
      .meta({ description: 'Metrics by resource and scope, as OTLP has them (ExportMetricsServiceRequest in JSON).' }),
  })
  .meta({ id: 'OtlpExportMetricsRequest', example: OTLP_EXAMPLE });

export const OtlpMetricsAnswer = z
  .object({
    partialSuccess: z
      .object({
        rejectedDataPoints: z.string().meta({ description: 'How many data points were not taken.' }),
        errorMessage: z.string().meta({ description: 'Which metrics, and why.' }),
      })
      .nullable()
      .meta({ description: 'What was not taken; null where all was.' }),
  })
  .meta({ id: 'OtlpExportMetricsResponse' });

export const IngestQuery = z.object({
  verdicts: z
    .stringbool()
    .default(false)
    .meta({ description: 'Take what is good, answer a verdict per event, and let a bad event refuse only itself.' }),
});

export const IngestEventAnswer = z
  .object({
    message: z.string().meta({ description: 'That it was accepted.' }),
    event_id: z.string().meta({ description: 'The id that was sent, or the one that was made.' }),
  })
  .meta({ id: 'IngestEventResponse' });

const Verdict = z
  .object({
    index: z.int().meta({ description: 'The place of the event in the request, from 0.' }),
    event_id: z
      .string()
      .nullable()
      .meta({ description: 'The id that was sent, or the one that was made; null where it was refused.' }),
    verdict: z.enum(['accepted', 'refused']).meta({ description: 'What became of it.' }),
    field: z.string().nullable().meta({ description: 'The field at fault; null where the event was accepted.' }),
    message: z.string().nullable().meta({ description: 'What is wrong with it; null where the event was accepted.' }),
  })
  .meta({ id: 'EventVerdict' });

const Accepted = z.object({ message: z.string().meta({ description: 'That they were accepted.' }) });

/** The verdicts are there where they are asked for. */
export const BulkIngestEventAnswer = z.union([
  Accepted.meta({ id: 'BulkIngestEventResponse' }),
  Accepted.extend({
    verdicts: z.array(Verdict).meta({ description: 'One for each event, in the order of the request.' }),
  }).meta({ id: 'BulkIngestEventVerdictsResponse' }),
]);

export const BulkIngestRawEventAnswer = Accepted.extend({
  batch_size: z.int().meta({ description: 'How many events were accepted.' }),
}).meta({ id: 'BulkIngestRawEventResponse' });
