/**
 * Sends an event again at once: to the endpoints that have not accepted it, and to subscribed endpoints without a delivery
 * (docs/rules/webhooks.md, "Sent again on request").
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { runAsSystem } from '../../../storage/foundation/request-context.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { WebhookDeliveryModel } from '../../../storage/models/delivery/webhook-delivery.ts';
import { SystemEventModel } from '../../../storage/models/foundation/system-event.ts';
import { listListeningEndpoints } from '../../../storage/queue/undispatched-events.ts';
import { addDeliveries, isSubscribed } from './dispatch-events.ts';

/** Makes the deliveries of the event due, and returns their number. */
export async function retryEvent(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, has_targets, author }: { id: string; has_targets: boolean; author: Author },
): Promise<number> {
  return postgres.transaction(async (transaction) => {
    const event = await SystemEventModel.fetch(scope, id, { database: transaction, lock: true });
    if (event.dispatched_at === null) return 1; // The event is not dispatched yet, so its first deliveries are still to be created.
    const listEndpoints = async () => listListeningEndpoints(transaction, [scope]);
    // This query is also used for several scopes at once, so it needs the system's context; this call reads only the
    // caller's scope.
    const listening = has_targets ? await runAsSystem(listEndpoints) : [];
    const wanting = listening.filter((endpoint) => isSubscribed(endpoint, event)).map((endpoint) => endpoint.id);
    // A test event is for its own endpoint only.
    const isTest = event.event_name === 'webhook_endpoint.test';
    const endpoint_ids: (string | null)[] = isTest ? [] : has_targets ? wanting : [null];
    const known = await WebhookDeliveryModel.in(scope, transaction).where('system_event_id', id);
    const unsent = known.filter(
      ({ endpoint_id, delivery_status }) =>
        delivery_status !== 'delivered' &&
        (endpoint_id === null ? !has_targets : listening.some((one) => one.id === endpoint_id)),
    );
    const missing = endpoint_ids.filter((each) => !known.some(({ endpoint_id }) => endpoint_id === each));
    if (unsent.length + missing.length === 0) throw buildNothingToRetryError(known);
    await redeliver(transaction, unsent, author);
    await addDeliveries(transaction, scope, { wanted: [{ event, endpoint_ids: missing }], now: author.now });
    return unsent.length + missing.length;
  });
}

function buildNothingToRetryError(known: readonly WebhookDeliveryModel[]) {
  return known.some(({ delivery_status }) => delivery_status === 'delivered')
    ? notAllowed('every endpoint that wants this event has taken it')
    : notAllowed('no endpoint that is enabled wants this event');
}

/** Makes the deliveries due and resets their failures. */
async function redeliver(
  transaction: Transaction,
  deliveries: readonly WebhookDeliveryModel[],
  author: Author,
): Promise<void> {
  for (const delivery of deliveries) {
    const due = { delivery_status: 'pending' as const, failure_count: 0, next_attempt_at: author.now.toISOString() };
    await WebhookDeliveryModel.change(delivery, due, { by: author, database: transaction });
  }
}
