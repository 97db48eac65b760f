/**
 * An inbound event: a webhook of a provider names its records that changed, and their state is then read from the
 * provider (docs/integrations/README.md, "Webhooks of providers").
 */
import { z } from 'zod';
import { baseFields, timestampText } from '../../foundation/record.ts';

export const PROVIDER_EVENT_STATES = ['received', 'processed', 'ignored', 'failed'] as const;

const SUBJECT_KINDS = ['invoice', 'payment', 'refund', 'dispute', 'setup', 'customer', 'subscription'] as const;

const eventSubject = z
  .object({
    kind: z.enum(SUBJECT_KINDS).meta({ description: 'Kind of the record at the provider.' }),
    provider_entity_id: z.string().meta({ description: 'Id of the record at the provider.' }),
  })
  .meta({ id: 'ProviderEventSubject' });
/** A record that changed at the provider. A setup is a form in which a customer saves a payment method. */
export type ProviderEventSubject = Readonly<z.output<typeof eventSubject>>;

export const providerEventShape = z.object({
  id: z.string(),
  connection_id: z.string().meta({ description: 'Connection to the account that the event is about.' }),
  provider_type: z.string().meta({ description: 'Provider that sent the event.' }),
  provider_event_id: z.string().meta({ description: "Provider's id of the event. A repeated delivery has no effect." }),
  event_type: z.string().meta({ description: "Provider's name of the event, such as invoice.paid." }),
  occurred_at: timestampText
    .nullable()
    .meta({ description: 'Time of the change at the provider; null if the provider does not state it.' }),
  subjects: z.array(eventSubject).meta({ description: 'Records of the provider that the event names.' }),
  event_state: z.enum(PROVIDER_EVENT_STATES).meta({
    description:
      'State: `received` until its effect, `processed`, `ignored` if it concerns no record of this environment, or `failed` after the last attempt.',
  }),
  reason: z.string().nullable().meta({
    description: 'Reason for which the event was ignored, or for which the last attempt failed; null without one.',
  }),
  attempt_count: z.int().meta({ description: 'Number of failed attempts.' }),
  next_attempt_at: timestampText.nullable().meta({ description: 'Time of the next attempt; null if there is none.' }),
  processed_at: timestampText.nullable().meta({ description: 'Time of the effect; null before.' }),
  ...baseFields,
});
export type ProviderEventRecord = z.output<typeof providerEventShape>;

const PAUSES_S: readonly number[] = [60, 300, 1_800, 7_200, 21_600, 43_200, 86_400];
/** Maximum attempts to process an event whose record is not stored here; the record may still arrive in the meantime. */
const UNKNOWN_ATTEMPTS_MAX = 4;

/**
 * Computes the next attempt after the n-th failed; null after the last. An event with an unknown record is retried for
 * a few hours only.
 */
export function computeEventRetryAt(
  attempt_count: number,
  { now, is_unknown }: { now: Date; is_unknown: boolean },
): Date | null {
  const seconds = PAUSES_S[attempt_count - 1];
  if (seconds === undefined || (is_unknown && attempt_count >= UNKNOWN_ATTEMPTS_MAX)) return null;
  return new Date(now.getTime() + seconds * 1_000);
}
