/** Requests and answers of event ingestion. */
import { z } from 'zod';
import { EVENTS_PER_REQUEST_MAX } from '../../../core/metering/event/accept.ts';

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
    event_name: z
      .string()
      .min(1)
      .meta({ description: 'Name of the event. Leading and trailing white space is removed.' }),
    event_id: z
      .string()
      .optional()
      .meta({ description: 'Idempotency key for the life of the data. Default: generated.' }),
    external_customer_id: z
      .string()
      .min(1)
      .meta({ description: 'External id of the customer, who need not exist yet.' }),
    customer_id: z
      .string()
      .optional()
      .meta({ description: 'Customer id that is stored with the event. Usage belongs to `external_customer_id`.' }),
    timestamp: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({ description: 'Time of the event. Default: the time of receipt.' }),
    source: z.string().optional().meta({ description: 'Source of the event, by which usage can be grouped.' }),
    properties: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: 'Values for meters; numbers keep their digits.' }),
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
      .meta({ description: `Events, 1 to ${EVENTS_PER_REQUEST_MAX}.` }),
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
      .meta({ description: `Events as JSON objects, 1 to ${EVENTS_PER_REQUEST_MAX}.` }),
  })
  .meta({
    id: 'BulkIngestRawEventRequest',
    example: {
      events: [THIRD_EVENT_EXAMPLE],
    },
  });

/**
 * Example of a CloudEvent. Its id differs from those of the other example events, because the tests of the documentation send all of them.
 */
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

/** Shape in the documentation; core/metering/event/cloud-event.ts decides which CloudEvents are accepted. */
export const CloudEventRequest = z
  .object({
    specversion: z.literal('1.0').meta({ description: 'Version of CloudEvents.' }),
    id: z.string().min(1).meta({ description: 'Idempotency key, together with `source`, for the life of the data.' }),
    source: z.string().min(1).meta({ description: 'Source of the event, a URI reference. Becomes `source`.' }),
    type: z.string().min(1).meta({ description: 'Type of the event. Becomes `event_name`.' }),
    subject: z.string().min(1).meta({ description: 'External id of the customer. Becomes `external_customer_id`.' }),
    time: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({ description: 'Time of the event. Default: the time of receipt. Becomes `timestamp`.' }),
    datacontenttype: z.string().optional().meta({ description: 'Media type of the data. It must be JSON.' }),
    dataschema: z.string().optional().meta({ description: 'Schema of the data. It has no effect.' }),
    data: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: 'Values for meters; numbers keep their digits. Becomes `properties`.' }),
  })
  .meta({ id: 'CloudEvent' });

export const CloudEventBatchRequest = z
  .array(CloudEventRequest)
  .min(1)
  .max(EVENTS_PER_REQUEST_MAX)
  .meta({ id: 'CloudEventBatch', description: `CloudEvents, 1 to ${EVENTS_PER_REQUEST_MAX}.` });

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

/** Shape in the documentation; core/metering/event/otlp-metrics.ts decides which metrics are accepted. */
export const OtlpMetricsRequest = z
  .object({
    resourceMetrics: z
      .array(z.record(z.string(), z.unknown()))
      .nullish()
      .meta({ description: 'Metrics by resource and scope, as in OTLP (ExportMetricsServiceRequest in JSON).' }),
  })
  .meta({ id: 'OtlpExportMetricsRequest', example: OTLP_EXAMPLE });

export const OtlpMetricsAnswer = z
  .object({
    partialSuccess: z
      .object({
        rejectedDataPoints: z.string().meta({ description: 'Number of rejected data points.' }),
        errorMessage: z.string().meta({ description: 'Rejected metrics and the reasons.' }),
      })
      .nullable()
      .meta({ description: 'Rejected data points; null if all were accepted.' }),
  })
  .meta({ id: 'OtlpExportMetricsResponse' });

export const IngestQuery = z.object({
  verdicts: z.stringbool().default(false).meta({
    description:
      'True to accept the valid events, refuse only the faulty ones, and return a verdict per event. A second event with an id and other content is faulty. Default: false.',
  }),
});

export const IngestEventAnswer = z
  .object({
    message: z.string().meta({ description: 'Confirmation that the event was accepted.' }),
    event_id: z.string().meta({ description: 'Id of the event, sent or generated.' }),
  })
  .meta({ id: 'IngestEventResponse' });

const Verdict = z
  .object({
    index: z.int().meta({ description: 'Index of the event in the request, from 0.' }),
    event_id: z
      .string()
      .nullable()
      .meta({ description: 'Id of the event, sent or generated; null if it was refused.' }),
    verdict: z.enum(['accepted', 'refused']).meta({ description: 'Outcome of the event.' }),
    field: z.string().nullable().meta({ description: 'Field with the fault; null if the event was accepted.' }),
    message: z.string().nullable().meta({ description: 'Reason of the refusal; null if the event was accepted.' }),
  })
  .meta({ id: 'EventVerdict' });

const Accepted = z.object({ message: z.string().meta({ description: 'Confirmation that the events were accepted.' }) });

/** The answer has verdicts if the request has `verdicts=true`. */
export const BulkIngestEventAnswer = z.union([
  Accepted.meta({ id: 'BulkIngestEventResponse' }),
  Accepted.extend({
    verdicts: z.array(Verdict).meta({ description: 'One verdict per event, in the order of the request.' }),
  }).meta({ id: 'BulkIngestEventVerdictsResponse' }),
]);

export const BulkIngestRawEventAnswer = Accepted.extend({
  batch_size: z.int().meta({ description: 'Number of accepted events.' }),
}).meta({ id: 'BulkIngestRawEventResponse' });
