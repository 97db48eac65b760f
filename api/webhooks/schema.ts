/** Requests and answers of system events, endpoints of webhooks and deliveries. */
import { z } from 'zod';
import { anyCase, metadata, orDefault, wholeNumber } from '../../core/record.ts';
import { SYSTEM_EVENT_NAMES } from '../../core/system-event/catalogue.ts';
import { systemEventName, systemEventShape } from '../../core/system-event/record.ts';
import {
  DELIVERY_STATUSES,
  ENDPOINT_STATUSES,
  webhookAttemptShape,
  webhookDeliveryShape,
  webhookEndpointShape,
} from '../../core/webhook/record.ts';
import { type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';

const event_names = z.array(systemEventName).meta({
  description:
    'The events that it is told, by their names in the catalogue; `invoice.update.finalized` and `invoice.create.drafted` are understood, too. Without any it is told all.',
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
    description: z.string().max(1_000).nullish().meta({ description: 'For people.' }),
    event_names: event_names.optional(),
    endpoint_status: anyCase(ENDPOINT_STATUSES).optional().meta({
      description: 'disabled: events that happen meanwhile are not kept for it. enabled: it begins anew.',
    }),
    metadata: metadata.unwrap().optional(),
  })
  .meta({ id: 'UpdateWebhookEndpointRequest', example: { event_names: ['invoice.finalized', 'customer.created'] } });

const OVERLAP_HOURS_MAX = 168;

export const RotateSecret = z
  .object({
    overlap_hours: orDefault(wholeNumber.pipe(z.int().min(0).max(OVERLAP_HOURS_MAX)), 24).meta({
      description: `For so many hours, ${OVERLAP_HOURS_MAX} at most, the secret before signs, too; 0 ends it at once.`,
    }),
  })
  .meta({ id: 'RotateWebhookSecretRequest', example: { overlap_hours: 24 } });

export const EndpointAnswer = webhookEndpointShape.meta({ id: 'WebhookEndpointResponse' });
export const EndpointListAnswer = listAnswer(EndpointAnswer, 'ListWebhookEndpointsResponse');

/** The secret itself is shown here and nowhere else. */
export const EndpointSecretAnswer = z
  .object({
    endpoint: EndpointAnswer.meta({ description: 'What is kept of the endpoint.' }),
    secret: z.string().meta({ description: 'What its signatures are made with: it is never shown again.' }),
  })
  .meta({ id: 'WebhookEndpointSecretResponse' });

export const EndpointFilter = listShape({
  endpoint_status: anyCase(ENDPOINT_STATUSES).optional().meta({ description: 'Whether it is told events.' }),
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
          event_name: z.enum(SYSTEM_EVENT_NAMES).meta({ description: 'As filters and bodies have it.' }),
          entity_type: z.string().meta({ description: 'The kind of record to which it happens.' }),
          description: z.string().meta({ description: 'When it is told.' }),
        }),
      )
      .meta({ description: 'Every event that is told.' }),
  })
  .meta({ id: 'WebhookEventTypesResponse' });

export const SystemEventAnswer = systemEventShape.meta({ id: 'SystemEventResponse' });
export const SystemEventListAnswer = listAnswer(SystemEventAnswer, 'ListSystemEventsResponse');
export const SystemEventFilter = listShape({
  event_names: matchAny('events, by their names'),
  entity_type: z.string().optional().meta({ description: 'The kind of record to which it happened.' }),
  entity_ids: matchAny('records to which it happened'),
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
    body: systemEventShape.shape.payload.meta({ description: 'What is sent.' }),
    attempts: z.array(webhookAttemptShape).meta({ description: 'Every try, the first one first.' }),
  })
  .meta({ id: 'WebhookDeliveryDetailResponse' });
export const DeliveryFilter = listShape({
  endpoint_ids: matchAny('endpoints'),
  system_event_ids: matchAny('events'),
  entity_ids: matchAny('records to which it happened'),
  event_names: matchAny('events, by their names'),
  delivery_status: anyCase(DELIVERY_STATUSES).optional().meta({ description: 'How far it is.' }),
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
  .object({ system_event_id: z.string().min(1).meta({ description: 'The event that is to be told again.' }) })
  .meta({
    id: 'RetryOutboundWebhookRequest',
    example: { system_event_id: 'sys_event_01JZ8K3M5N7P9Q1R3S5T7V9W1X' },
  });
export const RetryAnswer = z
  .object({
    success: z.boolean().meta({ description: 'Whether it is on its way.' }),
    message: z.string().meta({ description: 'To how many endpoints.' }),
    system_event_id: z.string().meta({ description: 'The event that is told again.' }),
  })
  .meta({ id: 'RetryOutboundWebhookResponse' });

export const DashboardAnswer = z
  .object({
    svix_enabled: z.boolean().meta({ description: 'Whether endpoints are looked after there, and not here.' }),
    url: z.string().nullable().meta({ description: 'Where they are; null when they are here.' }),
    token: z.string().nullable().meta({ description: 'What opens it, for some hours; null when they are here.' }),
    app_id: z.string().nullable().meta({ description: 'What the environment is called there.' }),
  })
  .meta({ id: 'WebhookDashboardResponse' });
