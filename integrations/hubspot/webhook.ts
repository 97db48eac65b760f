/**
 * Webhooks of HubSpot (developers.hubspot.com, "Validating requests", version 3, and "Generic webhook subscriptions").
 * The signature covers the method, the address, the body and the time. One webhook contains up to a hundred events.
 */

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { FarthingError } from '../../core/foundation/error.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type { InboundEvent } from '../account.ts';
import { parseExactJson } from '../exact-json.ts';
import type { InboundWebhook } from '../provider.ts';
import { buildSignatureRefusal, parseJsonBody } from '../webhook-parts.ts';
import { findType } from './records.ts';

export const SIGNATURE_HEADER = 'x-hubspot-signature-v3';
export const TIMESTAMP_HEADER = 'x-hubspot-request-timestamp';
/** Maximum difference between the time of the signature and ours. */
const TOLERANCE_MS = 300_000;

/** Characters that HubSpot signs unencoded. */
const DECODED = /%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi;

/** Every refusal has one message, so that a forger learns nothing from it. */
export function checkHubSpotSignature(
  secrets: readonly string[],
  { method = '', url = '', headers, body, now }: InboundWebhook,
): void {
  const timestamp = headers[TIMESTAMP_HEADER] ?? '';
  const address = url.replace(DECODED, decodeURIComponent);
  const given = Buffer.from(headers[SIGNATURE_HEADER] ?? '');
  const matching = secrets.filter((secret) => {
    const hash = createHmac('sha256', secret).update(`${method}${address}`).update(body).update(timestamp);
    const expected = Buffer.from(hash.digest('base64'));
    // The comparison needs buffers of one length.
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
  const isRecent = /^\d{1,15}$/.test(timestamp) && Math.abs(now.getTime() - Number(timestamp)) <= TOLERANCE_MS;
  if (matching.length === 0 || !isRecent) throw buildSignatureRefusal();
}

/** Numbers are texts, because ids may be longer than a JavaScript number. */
const events = z.array(
  z.object({
    eventId: z.string(),
    /** Example: `object.propertyChange`. Older subscriptions have the name of the type, such as `contact.creation`. */
    subscriptionType: z.string().min(1),
    portalId: z.string().min(1),
    occurredAt: z.string().optional(),
    objectTypeId: z.string().optional(),
    objectId: z.string().optional(),
    propertyName: z.string().optional(),
    propertyValue: z.string().nullish(),
    fromObjectTypeId: z.string().optional(),
    fromObjectId: z.string().optional(),
    toObjectTypeId: z.string().optional(),
    toObjectId: z.string().optional(),
    associationRemoved: z.boolean().optional(),
  }),
);
type HubSpotEvent = z.output<typeof events>[number];

export function parseHubSpotWebhook(body: Uint8Array): readonly InboundEvent[] {
  const parsed = events.safeParse(parseJsonBody(body, parseExactJson));
  if (parsed.success) return parsed.data.map(toEvent);
  throw new FarthingError('validation_error', 'the body is no list of events of HubSpot');
}

function toEvent(event: HubSpotEvent): InboundEvent {
  return {
    // HubSpot does not guarantee that its ids are unique. Repeated deliveries differ only in their attempt number.
    provider_event_id: createHash('sha256').update(JSON.stringify(event)).digest('hex'),
    event_type: event.subscriptionType,
    provider_account_id: event.portalId,
    occurred_at: toInstantText(event.occurredAt),
    subjects: listSubjects(event),
  };
}

function listSubjects(event: HubSpotEvent): ProviderEventSubject[] {
  return [
    ...toSubject(event.objectTypeId, event.objectId),
    ...toSubject(event.fromObjectTypeId, event.fromObjectId),
    ...toSubject(event.toObjectTypeId, event.toObjectId),
  ];
}

function toSubject(type_id: string | undefined, provider_entity_id: string | undefined): ProviderEventSubject[] {
  const type = findType(type_id);
  const isRead = provider_entity_id !== undefined && (type === 'invoice' || type === 'payment');
  return isRead ? [{ kind: type, provider_entity_id }] : [];
}

function toInstantText(epoch_ms: string | undefined): string | null {
  const instant = new Date(Number(epoch_ms));
  return Number.isNaN(instant.getTime()) ? null : instant.toISOString();
}
