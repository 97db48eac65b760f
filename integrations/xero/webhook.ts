/**
 * Webhooks of Xero: `x-xero-signature` is the base64 HMAC-SHA256 of the body with the webhook key (developer.xero.com, "Webhooks"). Before a
 * webhook is active, Xero sends lists without events, some with a wrong signature, which must be refused with 401 ("Intent to receive").
 */

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { FarthingError } from '../../core/foundation/error.ts';
import type { InboundEvent } from '../account.ts';
import { buildSignatureRefusal, parseJsonBody } from '../webhook-parts.ts';

type XeroWebhook = {
  readonly keys: readonly string[];
  readonly header: string | undefined;
  readonly body: Uint8Array;
};

/** Every refusal has one message, so that a forger learns nothing from it. */
export function checkXeroSignature({ keys, header = '', body }: XeroWebhook): void {
  const expected = keys.map((key) => Buffer.from(createHmac('sha256', key).update(body).digest('base64')));
  const given = Buffer.from(header);
  // The comparison needs buffers of one length.
  const matching = expected.filter((one) => given.length === one.length && timingSafeEqual(given, one));
  if (matching.length === 0) throw buildSignatureRefusal();
}

const eventShape = z.object({
  resourceId: z.string().min(1),
  tenantId: z.string().min(1),
  /** Example: `INVOICE`. */
  eventCategory: z.string().min(1),
  /** `CREATE` or `UPDATE`. */
  eventType: z.string().min(1),
  /** In UTC, without a zone. */
  eventDateUtc: z.string(),
});
const webhookShape = z.object({ events: z.array(eventShape) });

export function parseXeroWebhook(body: Uint8Array): readonly InboundEvent[] {
  const parsed = webhookShape.safeParse(parseJsonBody(body));
  if (!parsed.success) throw new FarthingError('validation_error', 'the body has no list of events');
  return parsed.data.events.map(toEvent);
}

/** Events have no id, so a digest of their content is the id, equal in a repeated delivery. */
function toEvent({ resourceId, tenantId, eventCategory, eventType, eventDateUtc }: z.output<typeof eventShape>) {
  const content = JSON.stringify([tenantId, eventCategory, resourceId, eventType, eventDateUtc]);
  const ms = Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/.test(eventDateUtc) ? eventDateUtc : `${eventDateUtc}Z`);
  return {
    provider_event_id: createHash('sha256').update(content).digest('hex'),
    event_type: `${eventCategory}.${eventType}`,
    provider_account_id: tenantId,
    occurred_at: Number.isNaN(ms) ? null : new Date(ms).toISOString(),
    subjects: eventCategory === 'INVOICE' ? [{ kind: 'invoice' as const, provider_entity_id: resourceId }] : [],
  };
}
