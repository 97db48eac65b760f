/**
 * Webhooks of Nomod (nomod.com/docs/webhooks/verifying-webhook-signatures). Svix signs them. Older ones have the secret itself in the header
 * `X-API-KEY`. Only ids are read from the body; the charge is then read from Nomod.
 */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type { InboundEvent } from '../account.ts';
import type { InboundWebhook } from '../provider.ts';
import { decodeStandardSecret, isStandardSignature } from '../standard-signature.ts';
import { buildSignatureRefusal, digestText, isSameSecret, parseJsonBody } from '../webhook-parts.ts';
import { isNomodId } from './records.ts';

type NomodDelivery = InboundWebhook & { readonly secrets: readonly string[] };

/** Checks both schemes for each webhook. */
export function checkNomodSignature({ secrets, headers, body, now }: NomodDelivery): void {
  const keys = secrets.map((secret) => decodeStandardSecret(secret) ?? digestText(secret));
  const delivery = {
    id: headers['svix-id'] ?? '',
    timestamp: headers['svix-timestamp'] ?? '',
    signatures: headers['svix-signature'] ?? '',
    ...{ body, now },
  };
  const isSigned = isStandardSignature(keys, delivery);
  const given = headers['x-api-key'] ?? '';
  // A webhook with headers of Svix must be signed, because a repeated one has no other protection.
  const isOlder = delivery.id === '' && given !== '';
  const matching = secrets.filter((secret) => isSameSecret(given, secret));
  if (!isSigned && !(isOlder && matching.length > 0)) throw buildSignatureRefusal();
}

const nomodEvent = z.object({
  type: z.string().min(1).max(255),
  data: z.record(z.string(), z.unknown()).nullish(),
});
/** Body of an older webhook, which is about one charge and names no event. */
const olderEvent = z.looseObject({ id: z.string().min(1) });
const OLDER_TYPE = 'charge';

const USED_EVENTS = /^charge\.\w+$/;

export function parseNomodWebhook({ headers, body }: Pick<InboundWebhook, 'headers' | 'body'>): InboundEvent[] {
  const parsed = parseJsonBody(body);
  const event = nomodEvent.safeParse(parsed);
  const older = olderEvent.safeParse(parsed);
  if (!event.success && !older.success) throw invalid('body', 'is no event of Nomod');
  const { type, data } = event.success ? event.data : { type: OLDER_TYPE, data: older.data! };
  const svix_id = headers['svix-id'];
  return [
    {
      // The signature covers the id of Svix, which a repeated delivery keeps. Older webhooks have no id, and two changes of a charge have one
      // body, so each delivery is an event.
      provider_event_id: svix_id ?? randomUUID(),
      event_type: type,
      provider_account_id: null,
      occurred_at: null,
      subjects: type === OLDER_TYPE || USED_EVENTS.test(type) ? listSubjects(data ?? {}) : [],
    },
  ];
}

/**
 * Lists the charge, its invoice and its link. Nomod does not document the fields of the last two. A page is known here as a payment by the id
 * of its link.
 */
function listSubjects(data: Readonly<Record<string, unknown>>): ProviderEventSubject[] {
  const link = data['payment_link_id'] ?? data['link_id'] ?? data['linkId'] ?? data['link'];
  const invoice = data['invoice_id'] ?? data['invoiceId'] ?? data['invoice'];
  return [...toSubjects('payment', data['id']), ...toSubjects('payment', link), ...toSubjects('invoice', invoice)];
}

function toSubjects(kind: ProviderEventSubject['kind'], reference: unknown): ProviderEventSubject[] {
  const isObject = typeof reference === 'object' && reference !== null;
  const id = isObject ? (reference as { readonly id?: unknown }).id : reference;
  return typeof id === 'string' && isNomodId(id) ? [{ kind, provider_entity_id: id }] : [];
}
