/** Records that are sent to the connected providers, and the system events after which they are sent (docs/integrations/README.md, "Sending by itself"). */
import type { SystemEventName } from '../system-event/catalogue.ts';

export const PUSHED_ENTITY_TYPES = ['customer', 'invoice', 'payment', 'credit_note'] as const;
export type PushedEntityType = (typeof PUSHED_ENTITY_TYPES)[number];

type PushedEvent = {
  readonly entity_type: PushedEntityType;
  /** The event changes a record that the provider has, and is of no interest to one that does not have it. */
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
  // A note of a subscription change is final when it is created.
  'credit_note.created': { entity_type: 'credit_note', only_known: false },
  'credit_note.updated': { entity_type: 'credit_note', only_known: false },
};

export function findPushedEvent(event_name: string): PushedEvent | null {
  return PUSHED_EVENTS[event_name as SystemEventName] ?? null;
}

const MINUTE_S = 60;
const LONGEST_PAUSE_S = 3_600;

/** A minute that doubles with each failure, or the wait that the provider asks for if that is longer; at most an hour. */
export function computePauseSeconds(pause_count: number, retry_after_seconds: number | null): number {
  const growing = MINUTE_S * 2 ** Math.min(pause_count, 10);
  return Math.min(LONGEST_PAUSE_S, Math.max(growing, retry_after_seconds ?? 0));
}
