/**
 * Parses events of Stripe's webhooks (docs.stripe.com/api/events, /events/types). A webhook endpoint has its own API version, so only ids
 * are read from the body. An event of an unknown shape names no record.
 */

import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type { InboundEvent } from '../account.ts';
import { parseJsonBody } from '../webhook-parts.ts';

const reference = z
  .union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)])
  .nullish()
  .catch(null);

const stripeEvent = z.object({
  id: z.string().min(1).max(255),
  type: z.string().min(1).max(255),
  created: z.int().nullish().catch(null),
  account: z.string().nullish().catch(null),
  data: z.object({
    object: z.object({
      // The object of `balance.available`, and that of a preview, has no id.
      id: z.string().min(1).max(255).nullish().catch(null),
      object: z.string().nullish().catch(null),
      invoice: reference,
      payment_intent: reference,
      charge: reference,
      setup_intent: reference,
    }),
  }),
});
type StripeObject = z.output<typeof stripeEvent>['data']['object'];

export function parseStripeEvents(body: Uint8Array): readonly InboundEvent[] {
  const { id, type, created, account, data } = parseEvent(body);
  const event = {
    provider_event_id: id,
    event_type: type,
    provider_account_id: account ?? null,
    occurred_at: created ? new Date(created * 1_000).toISOString() : null,
  };
  const list = LISTED.find(([name]) => name.test(type))?.[1];
  return [{ ...event, subjects: list?.(data.object) ?? [] }];
}

function parseEvent(body: Uint8Array): z.output<typeof stripeEvent> {
  const parsed = stripeEvent.safeParse(parseJsonBody(body));
  if (!parsed.success) throw invalid('body', 'is no event of Stripe');
  return parsed.data;
}

type SubjectList = (object: StripeObject) => ProviderEventSubject[];

/** Event types that are used, and the records that each names. A refund or dispute also names its payment. */
const LISTED: readonly (readonly [RegExp, SubjectList])[] = [
  [/^invoice\.(paid|voided|marked_uncollectible)$/, ({ id }) => toSubjects('invoice', id)],
  [/^credit_note\.(created|updated|voided)$/, ({ invoice }) => toSubjects('invoice', invoice)],
  [/^invoice_payment\.paid$/, ({ invoice }) => toSubjects('invoice', invoice)],
  [/^payment_intent\.(succeeded|payment_failed|processing|canceled)$/, ({ id }) => toSubjects('payment', id)],
  [/^setup_intent\.succeeded$/, ({ id }) => toSubjects('setup', id)],
  [/^payment_method\.detached$/, ({ id }) => toSubjects('setup', id)],
  [
    /^checkout\.session\.(completed|async_payment_succeeded|async_payment_failed|expired)$/,
    ({ id, payment_intent, setup_intent }) => [
      ...toSubjects('payment', id, payment_intent),
      ...toSubjects('setup', setup_intent),
    ],
  ],
  [/^charge\.refunded$/, ({ id, payment_intent }) => toSubjects('payment', payment_intent ?? id)],
  [/^refund\.(created|updated|failed)$/, (refund) => [...listPaid(refund), ...toSubjects('refund', refund.id)]],
  [/^charge\.dispute\.(created|closed)$/, (dispute) => [...listPaid(dispute), ...toSubjects('dispute', dispute.id)]],
];

function listPaid({ payment_intent, charge }: StripeObject): ProviderEventSubject[] {
  return toSubjects('payment', payment_intent ?? charge);
}

function toSubjects(kind: ProviderEventSubject['kind'], ...ids: (string | null | undefined)[]): ProviderEventSubject[] {
  return ids.flatMap((id) => (id ? { kind, provider_entity_id: id } : []));
}
