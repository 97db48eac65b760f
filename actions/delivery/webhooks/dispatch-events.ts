/**
 * Creates the deliveries of each system event, one per subscribed endpoint, and does so once per event. A batch contains some events of
 * each environment, so that a large backlog of one does not delay the others (docs/decisions/0021-fairness.md).
 */
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { WebhookDeliveryModel } from '../../../storage/models/delivery/webhook-delivery.ts';
import { toEnvironmentKey } from '../../../storage/queue/due-deliveries.ts';
import { listConnectedEnvironments } from '../../../storage/queue/pending-pushes.ts';
import {
  type ListeningEndpoint,
  listListeningEndpoints,
  listWaitingEnvironments,
  markDispatched,
  takeUndispatched,
  type UndispatchedEvent,
} from '../../../storage/queue/undispatched-events.ts';
import { pushLater } from '../integrations/push-later.ts';
import { mailLater } from '../mail/mail-invoice.ts';

/**
 * Number of deliveries in a batch, shared equally by the environments. Each environment gets at least one event,
 * however many endpoints it has.
 */
const DELIVERIES_PER_BATCH = 1_000;
const ENVIRONMENTS_PER_BATCH = 100;

/**
 * `has_targets` is true if this service stores the endpoints; otherwise each event is sent once. `mails` is true if
 * invoices are also e-mailed.
 */
type DispatchOptions = { readonly has_targets: boolean; readonly now: Date; readonly mails?: boolean };

/** `after` is the environment after which the next batch continues; null if no environment is left in this round. */
type DispatchResult = { readonly dispatched: number; readonly after: Scope | null };

export async function dispatchBatch(
  { postgres }: Pick<Stores, 'postgres'>,
  { after = null, ...how }: DispatchOptions & { readonly after?: Scope | null },
): Promise<DispatchResult> {
  return postgres.transaction(async (transaction) => {
    const waiting = await listWaitingEnvironments(transaction, { after, limit: ENVIRONMENTS_PER_BATCH });
    const dispatched = waiting.length === 0 ? 0 : await dispatchEnvironments(transaction, waiting, how);
    return { dispatched, after: waiting.length < ENVIRONMENTS_PER_BATCH ? null : waiting.at(-1)! };
  });
}

async function dispatchEnvironments(
  transaction: Transaction,
  environments: readonly Scope[],
  { has_targets, now, mails = false }: DispatchOptions,
): Promise<number> {
  const endpoints = groupBy(
    has_targets ? await listListeningEndpoints(transaction, environments) : [],
    toEnvironmentKey,
  );
  const listening = (scope: Scope) => endpoints.get(toEnvironmentKey(scope)) ?? [];
  const shares = environments.map(({ tenant_id, environment_id }) => {
    const each = Math.max(1, listening({ tenant_id, environment_id }).length);
    return {
      tenant_id,
      environment_id,
      limit: Math.max(1, Math.floor(DELIVERIES_PER_BATCH / environments.length / each)),
    };
  });
  const events = await takeUndispatched(transaction, shares);
  const connected = await listConnectedEnvironments(transaction, environments);
  for (const some of groupBy(events, toEnvironmentKey).values()) {
    const wanted = some.map((event) => {
      const wanting = listening(event).filter((endpoint) => isSubscribed(endpoint, event));
      return { event, endpoint_ids: has_targets ? wanting.map(({ id }) => id) : [null] };
    });
    const { tenant_id, environment_id } = some[0];
    await addDeliveries(transaction, { tenant_id, environment_id }, { wanted, now });
    if (connected.has(toEnvironmentKey(some[0])))
      await pushLater(transaction, { tenant_id, environment_id }, { events: some, now });
  }
  if (mails) for (const event of events) await mailLater(transaction, event);
  const ids = events.map(({ id }) => id);
  await markDispatched(transaction, ids, now);
  return events.length;
}

/** Whether the endpoint receives the event. An endpoint without event names receives all events. */
export function isSubscribed(
  endpoint: ListeningEndpoint,
  event: Pick<UndispatchedEvent, keyof Scope | 'event_name'>,
): boolean {
  const { tenant_id, environment_id, event_names } = endpoint;
  const isIn = tenant_id === event.tenant_id && environment_id === event.environment_id;
  return isIn && (event_names.length === 0 || event_names.includes(event.event_name));
}

type EventTargets = {
  readonly event: UndispatchedEvent;
  /** Ids of the endpoints that get the event; null stands for the managed service, which stores its endpoints itself. */
  readonly endpoint_ids: readonly (string | null)[];
};

/** Adds the deliveries of one environment's events, some hundreds per statement. */
export async function addDeliveries(
  transaction: Transaction,
  { tenant_id, environment_id }: Scope,
  { wanted, now }: { wanted: readonly EventTargets[]; now: Date },
): Promise<WebhookDeliveryModel[]> {
  const records = wanted.flatMap((one) => buildDeliveries(one, now));
  return WebhookDeliveryModel.addAll({ tenant_id, environment_id }, records, { database: transaction });
}

function buildDeliveries({ event, endpoint_ids }: EventTargets, now: Date) {
  const { id, sequence, event_name, entity_type, entity_id, created_at, has_clock } = event;
  return endpoint_ids.map((endpoint_id) => ({
    id: newId('webhook_delivery', now.getTime()),
    endpoint_id,
    system_event_id: id,
    sequence,
    event_name,
    entity_type,
    entity_id,
    // Retries are limited by the machine's clock, also in an environment with a test clock.
    told_at: has_clock ? now.toISOString() : created_at,
    delivery_status: 'pending',
    next_attempt_at: now.toISOString(),
    ...createdBy({ user_id: '', now }),
  }));
}
