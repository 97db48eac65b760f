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
