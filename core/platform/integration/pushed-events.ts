/**
 * Records that are pushed to the connected providers, and the system events that trigger a push
 * (docs/integrations/README.md, "Sending by itself").
 */
import { HOUR_SECONDS } from '../../foundation/time/durations.ts';
import type { SystemEventName } from '../system-event/catalogue.ts';

export const PUSHED_ENTITY_TYPES = ['customer', 'invoice', 'payment', 'credit_note', 'subscription'] as const;
export type PushedEntityType = (typeof PUSHED_ENTITY_TYPES)[number];

type PushedEvent = {
  readonly entity_type: PushedEntityType;
  /** If true, the event only updates a record that the provider has. It does not create the record at a provider without it. */
  readonly only_known: boolean;
};

const PUSHED_EVENTS: Partial<Record<SystemEventName, PushedEvent>> = {
  'customer.created': { entity_type: 'customer', only_known: false },
  'invoice.finalized': { entity_type: 'invoice', only_known: false },
  'invoice.update': { entity_type: 'invoice', only_known: true },
  'invoice.update.payment': { entity_type: 'invoice', only_known: true },
  'invoice.update.voided': { entity_type: 'invoice', only_known: true },
  'payment.success': { entity_type: 'payment', only_known: false },
  'payment.updated': { entity_type: 'payment', only_known: true },
  // Pushed at its creation, too, because a credit note of a subscription change is final from then on.
  'credit_note.created': { entity_type: 'credit_note', only_known: false },
  'credit_note.updated': { entity_type: 'credit_note', only_known: false },
  'subscription.created': { entity_type: 'subscription', only_known: false },
  // A draft becomes active without another event.
  'subscription.activated': { entity_type: 'subscription', only_known: false },
  'subscription.updated': { entity_type: 'subscription', only_known: true },
  'subscription.cancelled': { entity_type: 'subscription', only_known: true },
};

export function findPushedEvent(event_name: string): PushedEvent | null {
  return PUSHED_EVENTS[event_name as SystemEventName] ?? null;
}

const MINUTE_S = 60;
const LONGEST_PAUSE_S = HOUR_SECONDS;

/**
 * Pause of a failed connection: a minute that doubles with each failure, or the longer wait that the provider requests;
 * at most an hour.
 */
export function computePauseSeconds(pause_count: number, retry_after_seconds: number | null): number {
  const growing = MINUTE_S * 2 ** Math.min(pause_count, 10);
  return Math.min(LONGEST_PAUSE_S, Math.max(growing, retry_after_seconds ?? 0));
}
