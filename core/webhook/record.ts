/**
 * Where webhooks go, each delivery of an event to an endpoint, and each try of one
 * (docs/rules/webhooks.md, "Endpoints" and "Deliveries").
 */
import { z } from 'zod';
import { anyCase, baseFields, metadata, timestampText } from '../record.ts';
import { SYSTEM_EVENT_NAMES } from '../system-event/catalogue.ts';

export const ENDPOINT_STATUSES = ['enabled', 'disabled'] as const;
export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed'] as const;

const URL_LENGTH_MAX = 2_048;

export const endpointUrl = z
  .string()
  // As it is connected to: without spaces around it, scheme and host in lower case.
  .overwrite((text) => (URL.canParse(text) ? new URL(text).href : text))
  .max(URL_LENGTH_MAX)
  .refine(isHttpUrl, { error: 'must be an http(s) URL without user, password and fragment' })
  .meta({
    description: 'Where events are posted to. Redirects are not followed.',
    example: 'https://example.com/hooks',
  });

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, hash } = new URL(text);
  return ['http:', 'https:'].includes(protocol) && username === '' && password === '' && hash === '';
}

/** What is shown of an endpoint: its secret is not among it. */
export const webhookEndpointShape = z.object({
  id: z.string(),
  url: endpointUrl,
  description: z.string().max(1_000).nullable().default(null).meta({ description: 'For people.' }),
  event_names: z
    .array(z.enum(SYSTEM_EVENT_NAMES))
    .meta({ description: 'The events that it is told; an empty list is all of them.' }),
  endpoint_status: anyCase(ENDPOINT_STATUSES).meta({
    description: 'Events that happen while it is disabled are not kept for it.',
  }),
  secret_hint: z.string().meta({ description: 'The beginning and the end of its secret, to know it by.' }),
  previous_secret_expires_at: timestampText
    .nullable()
    .meta({ description: 'Until when the secret before signs, too; null when none does.' }),
  disabled_at: timestampText.nullable().meta({ description: 'When it was disabled; null while it is enabled.' }),
  disabled_reason: z.string().nullable().meta({ description: 'Why it was disabled; null while it is enabled.' }),
  failing_since: timestampText
    .nullable()
    .meta({ description: 'When it failed for the first time since it last took something; null when it works.' }),
  metadata,
  ...baseFields,
});
export type WebhookEndpoint = z.output<typeof webhookEndpointShape>;

export const webhookDeliveryShape = z.object({
  id: z.string(),
  endpoint_id: z
    .string()
    .nullable()
    .meta({ description: 'The endpoint that it is for; null where a managed service has the endpoints.' }),
  system_event_id: z.string().meta({ description: 'The event that is told; the header `webhook-id` has it.' }),
  event_name: z.string().meta({ description: 'What happened.' }),
  entity_type: z.string().meta({ description: 'The kind of record to which it happened.' }),
  entity_id: z.string().meta({ description: 'The id of that record.' }),
  delivery_status: anyCase(DELIVERY_STATUSES).meta({
    description: 'pending until it is taken with a 2xx; failed once it is not tried any more by itself.',
  }),
  attempt_count: z.int().meta({ description: 'How often it was tried.' }),
  failure_count: z.int().meta({ description: 'How often it has failed since it was made, or was asked for again.' }),
  next_attempt_at: timestampText.nullable().meta({ description: 'When it is tried again; null when it is not.' }),
  http_status: z.int().nullable().meta({ description: 'Of the last try; null when there was no answer.' }),
  failure_reason: z
    .string()
    .nullable()
    .meta({ description: 'Why the last try that failed did; kept after a success.' }),
  delivered_at: timestampText.nullable().meta({ description: 'When it was taken; null before.' }),
  ...baseFields,
});
export type WebhookDelivery = z.output<typeof webhookDeliveryShape>;

export const webhookAttemptShape = z.object({
  id: z.string(),
  delivery_id: z.string().meta({ description: 'The delivery that was tried.' }),
  attempt: z.int().meta({ description: '1 for the first try.' }),
  url: z.string().meta({ description: 'Where it was sent to.' }),
  attempted_at: timestampText.meta({ description: 'When it was tried.' }),
  duration_ms: z.int().meta({ description: 'How long it took.' }),
  http_status: z.int().nullable().meta({ description: 'What was answered; null when nothing was.' }),
  response_body: z.string().nullable().meta({ description: 'The beginning of what was answered, 4 KiB at most.' }),
  error: z.string().nullable().meta({ description: 'Why it failed; null when it was taken.' }),
});
export type WebhookAttempt = z.output<typeof webhookAttemptShape>;
