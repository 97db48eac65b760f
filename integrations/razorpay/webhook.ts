/**
 * Webhooks of Razorpay (razorpay.com/docs/webhooks/validate-test, /docs/webhooks/best-practices):
 * `X-Razorpay-Signature` is the hexadecimal HMAC-SHA256 of the body. It covers no time, so an old delivery can be
 * replayed. It does not cover `X-Razorpay-Event-Id` either, so the id of an event is a digest of its body: a replay has
 * the same id.
 */

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type { InboundEvent } from '../account.ts';
import type { InboundWebhook } from '../provider.ts';
import { buildSignatureRefusal, parseJsonBody } from '../webhook-parts.ts';
import { isRazorpayId } from './texts.ts';

type SignedDelivery = Pick<InboundWebhook, 'headers' | 'body'> & { readonly secrets: readonly string[] };

/** Checks the signature against each secret: after a change Razorpay signs retries with the previous one for a day. */
export function checkRazorpaySignature({ secrets, headers, body }: SignedDelivery): void {
  const signature = headers['x-razorpay-signature'] ?? '';
  const given = Buffer.from(/^[0-9a-f]{64}$/.test(signature) ? signature : '0'.repeat(64), 'hex');
  const matching = secrets.filter((secret) =>
    timingSafeEqual(given, createHmac('sha256', secret).update(body).digest()),
  );
  if (matching.length === 0) throw buildSignatureRefusal();
}

const razorpayEvent = z.object({
  entity: z.literal('event'),
  event: z.string().min(1).max(255),
  account_id: z.string().min(1).max(255).nullish(),
  created_at: z.number().int().positive().max(99_999_999_999).nullish(),
  payload: z.record(z.string(), z.unknown()),
});

/**
 * Events that change stored records. `payment.authorized` is one of them, because the payment may be captured later
 * without an event.
 */
const USED_EVENTS =
  /^(?:payment\.(?:authorized|captured|failed|dispute\.\w+)|payment_link\.\w+|invoice\.\w+|order\.paid|refund\.\w+)$/;

/** Kinds of records by their names in a payload. The payload of a dispute contains its payment. */
const KINDS: Readonly<Record<string, ProviderEventSubject['kind']>> = {
  invoice: 'invoice',
  payment: 'payment',
  payment_link: 'payment',
  refund: 'refund',
  dispute: 'dispute',
};

export function parseRazorpayWebhook({ body }: Pick<InboundWebhook, 'body'>): InboundEvent[] {
  const parsed = razorpayEvent.safeParse(parseJsonBody(body));
  if (!parsed.success) throw invalid('body', 'is no event of Razorpay');
  const { event, account_id, created_at, payload } = parsed.data;
  return [
    {
      provider_event_id: `sha256:${createHash('sha256').update(body).digest('hex')}`,
      event_type: event,
      provider_account_id: account_id ?? null,
      occurred_at: created_at ? new Date(created_at * 1_000).toISOString() : null,
      subjects: USED_EVENTS.test(event) ? listSubjects(payload) : [],
    },
  ];
}

function listSubjects(payload: Readonly<Record<string, unknown>>): ProviderEventSubject[] {
  return Object.entries(KINDS).flatMap(([name, kind]) => {
    const id = readEntityId(payload[name]);
    return id === null ? [] : [{ kind, provider_entity_id: id }];
  });
}

function readEntityId(part: unknown): string | null {
  const id = (part as { entity?: { id?: unknown } | null } | null | undefined)?.entity?.id;
  const isKnown = typeof id === 'string' && isRazorpayId(id, 'inv', 'pay', 'plink', 'rfnd', 'disp');
  return isKnown ? id : null;
}
