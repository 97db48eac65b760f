/**
 * Webhooks of Chargebee (apidocs.chargebee.com, "Events"). They have no signature: HTTP Basic with a user name and
 * password that the user chooses authenticates them. The body is therefore not proven, and only ids are read from it.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type { InboundEvent } from '../account.ts';
import { buildSignatureRefusal, parseJsonBody } from '../webhook-parts.ts';

type BasicWebhook = { readonly username: string; readonly password: string; readonly header: string | undefined };

/**
 * Compares digests, whose length does not reveal that of the credentials. Equal credentials are refused, because the
 * caller repeats the password if the user name is missing. Every refusal has one message, so that a forger learns
 * nothing from it.
 */
export function checkBasicCredentials({ username, password, header = '' }: BasicWebhook): void {
  const encoded = /^basic +([A-Za-z0-9+/=]+)$/i.exec(header)?.[1] ?? '';
  const given = digest(Buffer.from(encoded, 'base64'));
  const isSame = timingSafeEqual(given, digest(Buffer.from(`${username}:${password}`)));
  if (!isSame || username === password) throw buildSignatureRefusal();
}

function digest(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}

const idText = z.string().min(1).max(255);
const reference = z.object({ id: idText }).nullish().catch(null);

const chargebeeEvent = z.object({
  id: idText,
  event_type: idText,
  occurred_at: z.int().positive().max(99_999_999_999).nullish().catch(null),
  content: z.object({
    invoice: reference,
    invoices: z
      .array(z.object({ id: idText }))
      .nullish()
      .catch(null),
    transaction: z
      .object({
        id: idText,
        type: z.string().nullish().catch(null),
        refunded_txn_id: z.string().nullish().catch(null),
        linked_invoices: z
          .array(z.object({ invoice_id: idText }))
          .nullish()
          .catch(null),
      })
      .nullish()
      .catch(null),
    credit_note: z.object({ reference_invoice_id: z.string().nullish() }).nullish().catch(null),
    payment_source: reference,
  }),
});
type ChargebeeContent = z.output<typeof chargebeeEvent>['content'];

const MONEY_EVENTS =
  /^(?:payment_(?:succeeded|failed|initiated|refunded)|refund_initiated|transaction_(?:updated|deleted)|invoice_(?:updated|deleted)|credit_note_(?:created|updated|deleted))$/;
const METHOD_EVENTS = /^payment_source_(?:added|updated|deleted|locally_deleted)$/;

export function parseChargebeeWebhook(body: Uint8Array): readonly InboundEvent[] {
  const { id, event_type, occurred_at, content } = parseEvent(body);
  return [
    {
      provider_event_id: id,
      event_type,
      provider_account_id: null,
      occurred_at: occurred_at ? new Date(occurred_at * 1_000).toISOString() : null,
      subjects: listSubjects(event_type, content),
    },
  ];
}

function parseEvent(body: Uint8Array): z.output<typeof chargebeeEvent> {
  const parsed = chargebeeEvent.safeParse(parseJsonBody(body));
  if (!parsed.success) throw invalid('body', 'is no event of Chargebee');
  return parsed.data;
}

function listSubjects(event_type: string, content: ChargebeeContent): ProviderEventSubject[] {
  if (METHOD_EVENTS.test(event_type)) return toSubjects('setup', [content.payment_source?.id]);
  if (!MONEY_EVENTS.test(event_type)) return [];
  const { invoice, invoices, transaction, credit_note } = content;
  const invoice_ids = [
    invoice?.id,
    ...(invoices ?? []).map(({ id }) => id),
    ...(transaction?.linked_invoices ?? []).map(({ invoice_id }) => invoice_id),
    credit_note?.reference_invoice_id,
  ];
  const payment_id = transaction?.type === 'refund' ? transaction.refunded_txn_id : transaction?.id;
  // A payment page is known by the id of its invoice until it is paid (payments.ts).
  return [...toSubjects('invoice', invoice_ids), ...toSubjects('payment', [payment_id, ...invoice_ids])];
}

function toSubjects(
  kind: ProviderEventSubject['kind'],
  ids: readonly (string | null | undefined)[],
): ProviderEventSubject[] {
  return [...new Set(ids)].flatMap((id) => (id ? { kind, provider_entity_id: id } : []));
}
