/**
 * Webhooks of Moyasar (docs.moyasar.com, "Webhook Reference"). They are not signed: the body contains a token, which proves the sender.
 * Only the ids are read from the body; the payment is then read from Moyasar.
 */

import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type { InboundEvent } from '../account.ts';
import { buildSignatureRefusal, isSameSecret, parseJsonBody, toInstantText } from '../webhook-parts.ts';
import { isMoyasarId } from './records.ts';

type TokenWebhook = { readonly secrets: readonly string[]; readonly body: Uint8Array };

export function checkSecretToken({ secrets, body }: TokenWebhook): void {
  const token = readToken(body);
  const matching = secrets.filter((secret) => isSameSecret(token ?? '', secret));
  if (token === null || matching.length === 0) throw buildSignatureRefusal();
}

function readToken(body: Uint8Array): string | null {
  const parsed = z.object({ secret_token: z.string().min(1) }).safeParse(parseJsonBody(body));
  return parsed.success ? parsed.data.secret_token : null;
}

const moyasarEvent = z.object({
  id: z.string().min(1).max(255),
  type: z.string().min(1).max(255),
  created_at: z.string().nullish(),
  data: z.record(z.string(), z.unknown()).nullish(),
});

/** Events about payments. Moyasar spells `payment_faild` so, and other places of its documentation `payment_failed`. */
const USED_EVENTS = /^payment_(?:paid|faild|failed|refunded|voided|authorized|captured|abandoned|canceled|expired)$/;

export function parseMoyasarWebhook(body: Uint8Array): InboundEvent[] {
  const parsed = moyasarEvent.safeParse(parseJsonBody(body));
  if (!parsed.success) throw invalid('body', 'is no event of Moyasar');
  const { id, type, created_at, data } = parsed.data;
  return [
    {
      provider_event_id: id,
      event_type: type,
      provider_account_id: null,
      occurred_at: toInstantText(created_at),
      subjects: USED_EVENTS.test(type) ? listSubjects(data ?? {}) : [],
    },
  ];
}

/** A page is known here as a payment by the id of its invoice, so that id names both. */
function listSubjects(data: Readonly<Record<string, unknown>>): ProviderEventSubject[] {
  const invoice_id = data['invoice_id'];
  const payment = toSubjects('payment', data['id']);
  return [...payment, ...toSubjects('payment', invoice_id), ...toSubjects('invoice', invoice_id)];
}

function toSubjects(kind: ProviderEventSubject['kind'], id: unknown): ProviderEventSubject[] {
  return typeof id === 'string' && isMoyasarId(id) ? [{ kind, provider_entity_id: id }] : [];
}
