/** Webhook endpoints, deliveries of events to them, and attempts of deliveries (docs/rules/webhooks.md, "Endpoints" and "Deliveries"). */
import { z } from 'zod';
import { anyCase, baseFields, metadata, timestampText } from '../../foundation/record.ts';
import { SYSTEM_EVENT_NAMES } from '../system-event/catalogue.ts';

export const ENDPOINT_STATUSES = ['enabled', 'disabled'] as const;
export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed'] as const;

const URL_LENGTH_MAX = 2_048;

const endpointUrl = z
  .string()
  // Normalized as it is used for the connection: no surrounding spaces, scheme and host in lower case.
  .overwrite((text) => (URL.canParse(text) ? new URL(text).href : text))
  .max(URL_LENGTH_MAX)
  .refine(isHttpUrl, { error: 'must be an http(s) URL without user, password and fragment' })
  .meta({
    description:
      'URL that receives events by POST, at most 2048 characters. Redirects are not followed. A URL with user, password or fragment is refused.',
    example: 'https://example.com/hooks',
  });

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, hash } = new URL(text);
  return ['http:', 'https:'].includes(protocol) && username === '' && password === '' && hash === '';
}

/** Fields of an endpoint that responses show; its secret is not among them. */
export const webhookEndpointShape = z.object({
  id: z.string(),
  url: endpointUrl,
  description: z
    .string()
    .max(1_000)
    .nullable()
    .default(null)
    .meta({ description: 'Description for people, at most 1000 characters.' }),
  event_names: z
    .array(z.enum(SYSTEM_EVENT_NAMES))
    .meta({ description: 'Events that the endpoint receives; an empty list means all.' }),
  endpoint_status: anyCase(ENDPOINT_STATUSES).meta({
    description: 'Status of the endpoint. Events that occur while it is disabled are not delivered later.',
  }),
  secret_hint: z.string().meta({ description: 'Beginning and end of the signing secret, to recognize it.' }),
  previous_secret_expires_at: timestampText
    .nullable()
    .meta({ description: 'Time until which the previous secret signs too; null if there is no previous secret.' }),
  disabled_at: timestampText
    .nullable()
    .meta({ description: 'Time at which the endpoint was disabled; null while it is enabled.' }),
  disabled_reason: z
    .string()
    .nullable()
    .meta({ description: 'Reason why the endpoint was disabled; null while it is enabled.' }),
  failing_since: timestampText
    .nullable()
    .meta({ description: 'Time of the first failure since the last successful delivery; null if there is none.' }),
  metadata,
  ...baseFields,
});
export type WebhookEndpoint = z.output<typeof webhookEndpointShape>;

export const webhookDeliveryShape = z.object({
  id: z.string(),
  endpoint_id: z
    .string()
    .nullable()
    .meta({ description: 'Endpoint of the delivery; null if a managed service has the endpoints.' }),
  system_event_id: z.string().meta({ description: 'Delivered event; the header `webhook-id` contains its id.' }),
  event_name: z.string().meta({ description: 'Name of the delivered event.' }),
  entity_type: z.string().meta({ description: 'Kind of the changed record.' }),
  entity_id: z.string().meta({ description: 'Id of the changed record.' }),
  delivery_status: anyCase(DELIVERY_STATUSES).meta({
    description: 'Status of the delivery: pending until a 2xx response, failed after the last automatic attempt.',
  }),
  attempt_count: z.int().meta({ description: 'Number of attempts.' }),
  failure_count: z.int().meta({ description: 'Number of failures since the delivery was created or requested again.' }),
  next_attempt_at: timestampText.nullable().meta({ description: 'Time of the next attempt; null if there is none.' }),
  http_status: z
    .int()
    .nullable()
    .meta({ description: 'HTTP status of the last attempt; null if there was no response.' }),
  failure_reason: z
    .string()
    .nullable()
    .meta({ description: 'Reason of the last failed attempt; it remains after a success.' }),
  delivered_at: timestampText.nullable().meta({ description: 'Time of the successful delivery; null before.' }),
  ...baseFields,
});
export type WebhookDelivery = z.output<typeof webhookDeliveryShape>;

export const webhookAttemptShape = z.object({
  id: z.string(),
  delivery_id: z.string().meta({ description: 'Delivery of the attempt.' }),
  attempt: z.int().meta({ description: 'Number of the attempt, from 1.' }),
  url: z.string().meta({ description: 'URL that the request was sent to.' }),
  attempted_at: timestampText.meta({ description: 'Time of the attempt.' }),
  duration_ms: z.int().meta({ description: 'Duration of the attempt in milliseconds.' }),
  http_status: z.int().nullable().meta({ description: 'HTTP status of the response; null if there was none.' }),
  response_body: z
    .string()
    .nullable()
    .meta({ description: 'Beginning of the response body, at most 4 KiB; null if there was none.' }),
  error: z.string().nullable().meta({ description: 'Reason of the failure; null if the attempt succeeded.' }),
});
export type WebhookAttempt = z.output<typeof webhookAttemptShape>;
