/** Webhooks of Whop (docs.whop.com/developer/guides/webhooks), signed by the scheme of Standard Webhooks. Only ids are read from the body. */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type { InboundEvent } from '../account.ts';
import type { InboundWebhook } from '../provider.ts';
import { decodeStandardSecret, isStandardSignature } from '../standard-signature.ts';
import { buildSignatureRefusal, parseJsonBody, toInstantText } from '../webhook-parts.ts';
import { isWhopId } from './records.ts';

type WhopDelivery = InboundWebhook & { readonly secrets: readonly string[] };

/** Every refusal has one message, so that a forger learns nothing from it. */
export function checkWhopSignature({ secrets, headers, body, now }: WhopDelivery): void {
  const delivery = {
    id: headers['webhook-id'] ?? '',
    timestamp: headers['webhook-timestamp'] ?? '',
    signatures: headers['webhook-signature'] ?? '',
    ...{ body, now },
  };
  if (!isStandardSignature(secrets.flatMap(listKeys), delivery)) throw buildSignatureRefusal();
}

/** A shorter text is no key that somebody encoded. */
const ENCODED_LENGTH_MIN = 24;

/** Lists the keys that a secret may mean: its own characters, as Whop's library takes it, or the bytes that they encode. */
function listKeys(secret: string): Uint8Array[] {
  const own = Buffer.from(secret);
  const encoded = secret.replace(/^w(?:hsec|s)_/, '');
  const decoded = encoded.length < ENCODED_LENGTH_MIN ? null : decodeStandardSecret(`whsec_${encoded}`);
  // Each secret takes the same steps, so that their number reveals none.
  const digest = createHash('sha256').update(own).digest();
  return [own, decoded ?? digest];
}

const whopEvent = z.object({
  id: z.string().min(1).max(255),
  type: z.string().min(1).max(255),
  timestamp: z.string().nullish(),
  company_id: z.string().nullish(),
  data: z.looseObject({ id: z.unknown() }).nullish(),
});
type WhopRecord = Readonly<Record<string, unknown>>;

export function parseWhopWebhook({ headers, body }: Pick<InboundWebhook, 'headers' | 'body'>): InboundEvent[] {
  const parsed = whopEvent.safeParse(parseJsonBody(body));
  if (!parsed.success) throw invalid('body', 'is no event of Whop');
  const { id, type, timestamp, company_id, data } = parsed.data;
  return [
    {
      // The signature covers this id, which a repeated delivery keeps.
      provider_event_id: headers['webhook-id'] ?? id,
      event_type: type,
      provider_account_id: company_id ?? null,
      occurred_at: toInstantText(timestamp),
      subjects: listSubjects(type, data ?? {}),
    },
  ];
}

function listSubjects(type: string, data: WhopRecord): ProviderEventSubject[] {
  switch (type) {
    case 'invoice.paid':
    case 'invoice.past_due':
    case 'invoice.voided':
    case 'invoice.marked_uncollectible':
      return toSubjects('invoice', data['id']);
    case 'payment.succeeded':
    case 'payment.failed':
    case 'payment.pending':
      // A page is known here as a payment by the id of its configuration.
      return [...toSubjects('payment', data['id']), ...toSubjects('payment', data['checkout_configuration_id'])];
    case 'refund.created':
    case 'refund.updated':
      return toSubjects('payment', readPaymentId(data));
    case 'dispute.created':
    case 'dispute.updated':
      return [...toSubjects('dispute', data['id']), ...toSubjects('payment', readPaymentId(data))];
    case 'setup_intent.succeeded':
      return toSubjects('setup', data['id']);
    default:
      return [];
  }
}

function readPaymentId({ payment }: WhopRecord): unknown {
  return typeof payment === 'object' && payment !== null ? (payment as { readonly id?: unknown }).id : undefined;
}

function toSubjects(kind: ProviderEventSubject['kind'], id: unknown): ProviderEventSubject[] {
  return typeof id === 'string' && isWhopId(id) ? [{ kind, provider_entity_id: id }] : [];
}
