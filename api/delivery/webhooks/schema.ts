import { z } from 'zod';
import { anyCase, metadata, orDefault, wholeNumber } from '../../../core/foundation/record.ts';
import { SYSTEM_EVENT_NAMES } from '../../../core/platform/system-event/catalogue.ts';
import { systemEventName, systemEventShape } from '../../../core/platform/system-event/record.ts';
import {
  DELIVERY_STATUSES,
  ENDPOINT_STATUSES,
  webhookAttemptShape,
  webhookDeliveryShape,
  webhookEndpointShape,
} from '../../../core/platform/webhook/record.ts';
import { type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';

const event_names = z.array(systemEventName).meta({
  description:
    'Names of the events to send. The aliases `invoice.update.finalized` and `invoice.create.drafted` are accepted. ' +
    'An empty list sends all events.',
});
const { description } = webhookEndpointShape.shape;

export const CreateEndpoint = z
  .object({
    url: webhookEndpointShape.shape.url,
    description,
    event_names: orDefault(event_names, []).meta(event_names.meta()!),
    metadata,
  })
  .meta({
    id: 'CreateWebhookEndpointRequest',
    example: {
      url: 'https://hooks.example.com/farthing',
      description: 'Books invoices',
      event_names: ['invoice.finalized', 'subscription.cancelled'],
    },
  });

export const UpdateEndpoint = z
  .object({
    url: webhookEndpointShape.shape.url.optional(),
    description: z.string().max(1_000).nullish().meta({ description: 'Text for people; 1000 characters at most.' }),
    event_names: event_names.optional(),
    endpoint_status: anyCase(ENDPOINT_STATUSES)
      .optional()
      .meta({
        description:
          'disabled: events that happen meanwhile are not stored for the endpoint. enabled: sending resumes, and ' +
          'earlier failures no longer count.',
      }),
    metadata: metadata.unwrap().optional(),
  })
  .meta({ id: 'UpdateWebhookEndpointRequest', example: { event_names: ['invoice.finalized', 'customer.created'] } });

const OVERLAP_HOURS_MAX = 168;

export const RotateSecret = z
  .object({
    overlap_hours: orDefault(wholeNumber.pipe(z.int().min(0).max(OVERLAP_HOURS_MAX)), 24).meta({
      description: `Hours for which the previous secret also signs, ${OVERLAP_HOURS_MAX} at most; 0 ends it at once. Default 24.`,
    }),
  })
  .meta({ id: 'RotateWebhookSecretRequest', example: { overlap_hours: 24 } });

export const EndpointAnswer = webhookEndpointShape.meta({ id: 'WebhookEndpointResponse' });
export const EndpointListAnswer = listAnswer(EndpointAnswer, 'ListWebhookEndpointsResponse');

/** The only answer that contains the secret. */
export const EndpointSecretAnswer = z
  .object({
    endpoint: EndpointAnswer.meta({ description: 'The stored endpoint.' }),
    secret: z.string().meta({ description: 'Secret of the signatures. It is not shown again.' }),
  })
  .meta({ id: 'WebhookEndpointSecretResponse' });

export const EndpointFilter = listShape({
  endpoint_status: anyCase(ENDPOINT_STATUSES)
    .optional()
    .meta({ description: 'Matches enabled or disabled endpoints.' }),
}).meta({ id: 'WebhookEndpointFilter' });
export type EndpointFilter = z.output<typeof EndpointFilter>;
export const endpointGrammar: ListGrammar = {
  columns: {
    id: 'string',
    url: 'string',
    endpoint_status: 'string',
    failing_since: 'date',
    created_at: 'date',
    updated_at: 'date',
  },
};

export const EventTypesAnswer = z
  .object({
    items: z
      .array(
        z.object({
          event_name: z
            .enum(SYSTEM_EVENT_NAMES)
            .meta({ description: 'Name of the event in filters and in delivered bodies.' }),
          entity_type: z.string().meta({ description: 'Kind of record that the event belongs to.' }),
          description: z.string().meta({ description: 'Condition under which the event is sent.' }),
        }),
      )
      .meta({ description: 'All events that can be sent.' }),
  })
  .meta({ id: 'WebhookEventTypesResponse' });

export const SystemEventAnswer = systemEventShape.meta({ id: 'SystemEventResponse' });
export const SystemEventListAnswer = listAnswer(SystemEventAnswer, 'ListSystemEventsResponse');
export const SystemEventFilter = listShape({
  event_names: matchAny('event names'),
  entity_type: z.string().optional().meta({ description: 'Kind of record that the event belongs to.' }),
  entity_ids: matchAny('records of the event'),
}).meta({ id: 'SystemEventFilter', example: { event_names: ['customer.created'], limit: 10 } });
export type SystemEventFilter = z.output<typeof SystemEventFilter>;
export const systemEventGrammar: ListGrammar = {
  columns: {
    id: 'string',
    event_name: 'string',
    entity_type: 'string',
    entity_id: 'string',
    created_at: 'date',
    created_by: 'string',
  },
};

export const DeliveryAnswer = webhookDeliveryShape.meta({ id: 'WebhookDeliveryResponse' });
export const DeliveryListAnswer = listAnswer(DeliveryAnswer, 'ListWebhookDeliveriesResponse');
export const DeliveryDetailAnswer = webhookDeliveryShape
  .extend({
    body: systemEventShape.shape.payload.meta({ description: 'Body of the webhook.' }),
    attempts: z.array(webhookAttemptShape).meta({ description: 'Attempts, oldest first.' }),
  })
  .meta({ id: 'WebhookDeliveryDetailResponse' });
export const DeliveryFilter = listShape({
  endpoint_ids: matchAny('endpoints'),
  system_event_ids: matchAny('events'),
  entity_ids: matchAny('records of the event'),
  event_names: matchAny('event names'),
  delivery_status: anyCase(DELIVERY_STATUSES).optional().meta({ description: 'Status of the delivery.' }),
}).meta({ id: 'WebhookDeliveryFilter', example: { delivery_status: 'failed', limit: 10 } });
export type DeliveryFilter = z.output<typeof DeliveryFilter>;
export const deliveryGrammar: ListGrammar = {
  columns: {
    id: 'string',
    endpoint_id: 'string',
    system_event_id: 'string',
    event_name: 'string',
    entity_id: 'string',
    delivery_status: 'string',
    next_attempt_at: 'date',
    delivered_at: 'date',
    created_at: 'date',
  },
};

export const RetryWebhook = z
  .object({ system_event_id: z.string().min(1).meta({ description: 'Id of the event to send again.' }) })
  .meta({
    id: 'RetryOutboundWebhookRequest',
    example: { system_event_id: 'sys_event_01JZ8K3M5N7P9Q1R3S5T7V9W1X' },
  });
export const RetryAnswer = z
  .object({
    success: z.boolean().meta({ description: 'True if the event is being sent.' }),
    message: z.string().meta({ description: 'Sentence for people with the number of endpoints.' }),
    system_event_id: z.string().meta({ description: 'Id of the event.' }),
  })
  .meta({ id: 'RetryOutboundWebhookResponse' });

export const DashboardAnswer = z
  .object({
    svix_enabled: z.boolean().meta({ description: 'True if Svix manages the endpoints.' }),
    url: z.string().nullable().meta({ description: 'Address of the Svix page; null if endpoints are managed here.' }),
    token: z.string().nullable().meta({
      description:
        'Access token of the page that manages the endpoints, valid for some hours; null if endpoints are managed here.',
    }),
    app_id: z.string().nullable().meta({ description: 'Id of the environment at Svix.' }),
  })
  .meta({ id: 'WebhookDashboardResponse' });
