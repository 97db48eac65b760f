/**
 * Webhooks of QuickBooks: `intuit-signature` is the base64 HMAC-SHA256 of the body, with the verifier token as its key
 * (developer.intuit.com, "Webhooks"). The body is a list of CloudEvents, or for older subscriptions an object with
 * `eventNotifications`. One body of either form may name several companies.
 */

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { FarthingError } from '../../core/foundation/error.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type { InboundEvent } from '../account.ts';
import { buildSignatureRefusal, parseJsonBody, toInstantText } from '../webhook-parts.ts';

type IntuitWebhook = {
  readonly tokens: readonly string[];
  readonly header: string | undefined;
  readonly body: Uint8Array;
};

/** Every refusal has one message, so that a forger learns nothing from it. */
export function checkIntuitSignature({ tokens, header = '', body }: IntuitWebhook): void {
  const expected = tokens.map((token) => Buffer.from(createHmac('sha256', token).update(body).digest('base64')));
  const given = Buffer.from(header);
  // The comparison needs buffers of one length.
  const matching = expected.filter((one) => given.length === one.length && timingSafeEqual(given, one));
  if (matching.length === 0) throw buildSignatureRefusal();
}

const cloudEvents = z.array(
  z.object({
    id: z.string().min(1),
    /** Example: `qbo.invoice.updated.v1`. */
    type: z.string(),
    time: z.string().optional(),
    intuitentityid: z.string().min(1),
    intuitaccountid: z.string().min(1),
  }),
);
const notifications = z.object({
  eventNotifications: z.array(
    z.object({
      realmId: z.string().min(1),
      dataChangeEvent: z.object({
        entities: z.array(
          z.object({
            name: z.string(),
            id: z.string().min(1),
            operation: z.string(),
            lastUpdated: z.string().optional(),
          }),
        ),
      }),
    }),
  ),
});

export function parseIntuitWebhook(body: Uint8Array): readonly InboundEvent[] {
  const parsed = parseJsonBody(body);
  const events = cloudEvents.safeParse(parsed);
  if (events.success) return events.data.map(toEvent);
  const older = notifications.safeParse(parsed);
  if (older.success) return older.data.eventNotifications.flatMap(toOlderEvents);
  throw new FarthingError('validation_error', 'the body is no list of CloudEvents and has no eventNotifications');
}

function toEvent({
  id,
  type,
  time,
  intuitentityid,
  intuitaccountid,
}: z.output<typeof cloudEvents>[number]): InboundEvent {
  return {
    provider_event_id: id,
    event_type: type,
    provider_account_id: intuitaccountid,
    occurred_at: toInstantText(time),
    subjects: toSubjects(type.split('.')[1] ?? '', intuitentityid),
  };
}

type Notification = z.output<typeof notifications>['eventNotifications'][number];

/**
 * Parses the older form of events. These have no id, so a digest of their content is the id, equal in a repeated
 * delivery.
 */
function toOlderEvents({ realmId, dataChangeEvent: { entities } }: Notification): InboundEvent[] {
  return entities.map(({ name, id, operation, lastUpdated }) => {
    const content = JSON.stringify([realmId, name, id, operation, lastUpdated]);
    return {
      provider_event_id: createHash('sha256').update(content).digest('hex'),
      event_type: `${name}.${operation}`,
      provider_account_id: realmId,
      occurred_at: toInstantText(lastUpdated),
      subjects: toSubjects(name.toLowerCase(), id),
    };
  });
}

function toSubjects(name: string, provider_entity_id: string): ProviderEventSubject[] {
  return name === 'invoice' || name === 'payment' ? [{ kind: name, provider_entity_id }] : [];
}
