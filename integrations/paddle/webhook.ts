/**
 * Webhooks of Paddle: `Paddle-Signature: ts=<unix seconds>;h1=<hex>`, an HMAC-SHA256 of `ts:body`
 * (developer.paddle.com/webhooks/signature-verification). While the secret of a destination is rotated, there are
 * several `h1`.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type { InboundEvent } from '../account.ts';
import { buildSignatureRefusal, parseJsonBody, toInstantText } from '../webhook-parts.ts';
import { isPaddleId } from './records.ts';

/** Maximum age of a delivery; an older one may be a replay. Paddle recommends 5 seconds, which a slow network exceeds. */
const TOLERANCE_SECONDS = 300;

type PaddleDelivery = {
  readonly secrets: readonly string[];
  readonly header: string | undefined;
  readonly body: Uint8Array;
  readonly now: Date;
};

/** Every refusal has one message, so that a forger learns nothing from it. */
export function checkPaddleSignature({ secrets, header = '', body, now }: PaddleDelivery): void {
  const [time, ...others] = listValues(header, 'ts', /^\d{1,12}$/);
  const given = listValues(header, 'h1', /^[0-9a-f]{64}$/).map((hex) => Buffer.from(hex, 'hex'));
  const age_seconds = Math.abs(now.getTime() / 1_000 - Number(time ?? Number.NaN));
  const isTimely = others.length === 0 && age_seconds <= TOLERANCE_SECONDS;
  const expected = secrets.map((secret) => createHmac('sha256', secret).update(`${time}:`).update(body).digest());
  const matching = expected.flatMap((one) => given.filter((signature) => timingSafeEqual(signature, one)));
  if (!isTimely || matching.length === 0) throw buildSignatureRefusal();
}

function listValues(header: string, name: string, form: RegExp): string[] {
  return header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
    .filter((value) => form.test(value));
}

const paddleEvent = z.object({
  event_id: z.string().min(1).max(255),
  event_type: z.string().min(1).max(255),
  occurred_at: z.string().nullish().catch(null),
  data: z.object({
    id: z.unknown().optional(),
    transaction_id: z.unknown().optional(),
    action: z.unknown().optional(),
  }),
});
type EventData = z.output<typeof paddleEvent>['data'];

/** Events that change stored records. `transaction.paid` shows that money is on its way. */
const TRANSACTION_EVENTS = /^transaction\.(?:billed|canceled|completed|paid|past_due|payment_failed)$/;
const ADJUSTMENT_EVENTS = /^adjustment\.(?:created|updated)$/;

export function parsePaddleWebhook(body: Uint8Array): InboundEvent[] {
  const { event_id, event_type, occurred_at, data } = parseEvent(body);
  return [
    {
      provider_event_id: event_id,
      event_type,
      provider_account_id: null,
      occurred_at: toInstantText(occurred_at),
      subjects: listSubjects(event_type, data),
    },
  ];
}

function parseEvent(body: Uint8Array): z.output<typeof paddleEvent> {
  const parsed = paddleEvent.safeParse(parseJsonBody(body));
  if (!parsed.success) throw invalid('body', 'is no event of Paddle');
  return parsed.data;
}

function listSubjects(event_type: string, { id, transaction_id, action }: EventData): ProviderEventSubject[] {
  if (TRANSACTION_EVENTS.test(event_type)) return listTransaction(id);
  if (!ADJUSTMENT_EVENTS.test(event_type)) return [];
  const isDispute = typeof action === 'string' && action.startsWith('chargeback') && isPaddleId(id, 'adj');
  const dispute: ProviderEventSubject[] = isDispute ? [{ kind: 'dispute', provider_entity_id: id }] : [];
  return [...listTransaction(transaction_id), ...dispute];
}

/** A transaction is an invoice and, once it is paid, its payment (pulled-invoice.ts), or the payment of a page. */
function listTransaction(id: unknown): ProviderEventSubject[] {
  if (!isPaddleId(id, 'txn')) return [];
  return (['invoice', 'payment'] as const).map((kind) => ({ kind, provider_entity_id: id }));
}
