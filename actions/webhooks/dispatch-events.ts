/** Makes of each system event the deliveries that it needs: one for each endpoint that wants it. Each event once. */

import type { Scope } from '../../core/scope.ts';
import { createdBy } from '../../core/stamp.ts';
import { WebhookDeliveryModel } from '../../storage/models/webhook-delivery.ts';
import { newId } from '../../storage/new-id.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import {
  type ListeningEndpoint,
  listeningEndpoints,
  markDispatched,
  takeUndispatched,
  type UndispatchedEvent,
} from '../../storage/webhooks/undispatched.ts';
import { mailLater } from '../invoices/mail-invoice.ts';

const EVENTS_AT_ONCE = 500;

/** `has_targets`: the endpoints are ours; else each event goes out once. `mails`: invoices are sent by e-mail, too. */
type Dispatching = { readonly has_targets: boolean; readonly now: Date; readonly mails?: boolean };

/** Answers how many events were dispatched. */
export async function dispatchEvents({ postgres }: Pick<Stores, 'postgres'>, how: Dispatching): Promise<number> {
  for (let dispatched = 0; ; ) {
    const count = await postgres.transaction((transaction) => dispatchSome(transaction, how));
    dispatched += count;
    if (count < EVENTS_AT_ONCE) return dispatched;
  }
}

async function dispatchSome(
  transaction: Transaction,
  { has_targets, now, mails = false }: Dispatching,
): Promise<number> {
  const events = await takeUndispatched(transaction, EVENTS_AT_ONCE);
  if (events.length === 0) return 0;
  const endpoints = has_targets ? await listeningEndpoints(transaction, events) : [];
  for (const event of events) {
    const wanting = has_targets ? endpoints.filter((endpoint) => wants(endpoint, event)).map(({ id }) => id) : [null];
    await addDeliveries(transaction, { event, endpoint_ids: wanting, now });
    if (mails) await mailLater(transaction, event);
  }
  const ids = events.map(({ id }) => id);
  await markDispatched(transaction, ids, now);
  return events.length;
}

/** An endpoint without names wants all events. */
export function wants(
  endpoint: ListeningEndpoint,
  event: Pick<UndispatchedEvent, keyof Scope | 'event_name'>,
): boolean {
  const { tenant_id, environment_id, event_names } = endpoint;
  const isIn = tenant_id === event.tenant_id && environment_id === event.environment_id;
  return isIn && (event_names.length === 0 || event_names.includes(event.event_name));
}

export type NewDeliveries = {
  readonly event: UndispatchedEvent;
  /** Null is the managed service. */
  readonly endpoint_ids: readonly (string | null)[];
  readonly now: Date;
};

export async function addDeliveries(
  transaction: Transaction,
  { event, endpoint_ids, now }: NewDeliveries,
): Promise<WebhookDeliveryModel[]> {
  const { id, sequence, event_name, entity_type, entity_id, created_at, has_clock } = event;
  const records = endpoint_ids.map((endpoint_id) => ({
    id: newId('webhook_delivery', now.getTime()),
    endpoint_id,
    system_event_id: id,
    sequence,
    event_name,
    entity_type,
    entity_id,
    // How long it is tried goes by the machine's clock, in an environment with one of its own, too.
    told_at: has_clock ? now.toISOString() : created_at,
    delivery_status: 'pending',
    next_attempt_at: now.toISOString(),
    ...createdBy({ user_id: '', now }),
  }));
  const { tenant_id, environment_id } = event;
  return WebhookDeliveryModel.addAll({ tenant_id, environment_id }, records, { database: transaction });
}
