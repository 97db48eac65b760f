/**
 * Makes one attempt of one delivery. It is sent outside any transaction; then one transaction records the result and its consequences for
 * the delivery and its endpoint (docs/rules/webhooks.md, "Tried again" and "An endpoint that fails").
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { computeNextDeliveryAttempt, shouldDisableEndpoint } from '../../../core/platform/webhook/schedule.ts';
import type { SendOutcome, WebhookBackend, WebhookTarget } from '../../../integrations/webhook-backend.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { SecretSealer } from '../../../storage/foundation/secrets/sealing.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { WebhookAttemptModel } from '../../../storage/models/delivery/webhook-attempt.ts';
import { WebhookDeliveryModel } from '../../../storage/models/delivery/webhook-delivery.ts';
import { WebhookEndpointModel } from '../../../storage/models/delivery/webhook-endpoint.ts';
import { SystemEventModel } from '../../../storage/models/foundation/system-event.ts';
import type { DueDelivery } from '../../../storage/queue/due-deliveries.ts';
import { emit } from '../../foundation/emit.ts';

export type WebhookServices = Pick<Stores, 'postgres'> & {
  readonly backend: WebhookBackend;
  /** Unseals the secrets of endpoints. */
  readonly sealing: SecretSealer;
  /** Whether invoices are e-mailed, too. */
  readonly mails?: boolean;
};

type DeliveryAttempt = {
  readonly delivery: DueDelivery;
  readonly lease: string;
  readonly now: Date;
  readonly max_attempts: number;
};

export type DeliveryResult = {
  readonly how: 'delivered' | 'failed' | 'given_up';
  readonly duration_ms: number;
  /** The endpoint that this failure disabled. */
  readonly disabled: WebhookEndpointModel | null;
  readonly delivery_id: string;
  /** Reason of the failure, for our log only. */
  readonly detail: string | null;
};

export async function sendDelivery(
  { postgres, backend, sealing }: WebhookServices,
  attempt: DeliveryAttempt,
): Promise<DeliveryResult> {
  const { delivery, now } = attempt;
  const { tenant_id, environment_id, endpoint_id, system_event_id } = delivery;
  const scope = { tenant_id, environment_id };
  const event = await SystemEventModel.fetch(scope, system_event_id, { database: postgres });
  const target =
    endpoint_id === null ? null : await loadTarget(scope, endpoint_id, { database: postgres, sealing, now });
  const body = JSON.stringify(event.payload);

  const outcome = await backend.send({ id: event.id, event_name: event.event_name, body, ...scope }, target);

  return postgres.transaction((transaction) => recordAttempt(transaction, scope, { ...attempt, outcome }));
}

/** Loads the target. During a rotation the old secret signs, too. */
async function loadTarget(
  scope: Scope,
  id: string,
  { database, sealing, now }: { database: WebhookServices['postgres']; sealing: SecretSealer; now: Date },
): Promise<WebhookTarget> {
  const endpoint = await WebhookEndpointModel.fetch(scope, id, { database });
  const { url, secret, previous_secret, previous_secret_expires_at } = endpoint;
  const isBoth =
    previous_secret !== null &&
    previous_secret_expires_at !== null &&
    toInstant(previous_secret_expires_at) > now.getTime();
  return {
    url,
    secrets: (isBoth ? [secret, previous_secret] : [secret]).map((secret_text) => sealing.open(secret_text, endpoint)),
  };
}

type AttemptedDelivery = DeliveryAttempt & { readonly outcome: SendOutcome };

/** Locks the endpoint before the delivery: every transaction that locks both uses this order. */
async function recordAttempt(
  transaction: Transaction,
  scope: Scope,
  tried: AttemptedDelivery,
): Promise<DeliveryResult> {
  const { delivery, outcome, now } = tried;
  const isTaken = outcome.error === null;
  const { endpoint_id } = delivery;
  const disabled =
    endpoint_id === null
      ? null
      : isTaken
        ? await markWorking(transaction, scope, { endpoint_id, now })
        : await recordFailure(transaction, scope, { endpoint_id, now });
  const current = await WebhookDeliveryModel.fetch(scope, delivery.id, { database: transaction, lock: true });
  await WebhookAttemptModel.add(scope, buildAttempt(current, tried), { database: transaction });
  const changes = buildChanges(current, tried);
  const after = await WebhookDeliveryModel.change(current, changes, { by: { now }, database: transaction });
  const how = isTaken ? 'delivered' : after.delivery_status === 'failed' ? 'given_up' : 'failed';
  return { how, duration_ms: outcome.duration_ms, disabled, delivery_id: delivery.id, detail: outcome.detail ?? null };
}

function buildAttempt(delivery: WebhookDeliveryModel, { outcome: { detail: _, ...outcome }, now }: AttemptedDelivery) {
  return {
    id: newId('webhook_attempt', now.getTime()),
    delivery_id: delivery.id,
    attempt: delivery.attempt_count + 1,
    attempted_at: now.toISOString(),
    ...outcome,
  };
}

/**
 * Builds the changes of a delivery. A success is recorded even if another run has the lease now, so that nothing is
 * sent twice. A failure is recorded only by the run with the lease.
 */
function buildChanges(delivery: WebhookDeliveryModel, tried: AttemptedDelivery): Partial<WebhookDeliveryModel> {
  const { outcome, lease, now } = tried;
  const { error, http_status } = outcome;
  const attempt_count = delivery.attempt_count + 1;
  const free = { lease: null, leased_until: null };
  const delivered_at = now.toISOString();
  if (error === null)
    return { attempt_count, http_status, delivery_status: 'delivered', delivered_at, next_attempt_at: null, ...free };
  if (delivery.delivery_status !== 'pending' || delivery.lease !== lease) return { attempt_count };
  const failure_count = delivery.failure_count + 1;
  const failure = { failure_count, emitted_at: toInstant(delivery.told_at), now: now.getTime() };
  const next = computeNextDeliveryAttempt(failure, tried.max_attempts);
  const status = next === null ? ('failed' as const) : ('pending' as const);
  const next_attempt_at = next === null ? null : new Date(next).toISOString();
  const failed = { failure_count, failure_reason: error, delivery_status: status, next_attempt_at };
  return { attempt_count, http_status, ...failed, ...free };
}

type UsedEndpoint = { readonly endpoint_id: string; readonly now: Date };

async function markWorking(transaction: Transaction, scope: Scope, { endpoint_id, now }: UsedEndpoint): Promise<null> {
  await WebhookEndpointModel.in(scope, transaction)
    .where('id', endpoint_id)
    .where('failures', '>', 0)
    .patch({ failing_since: null, failures: 0, updated_at: now.toISOString() });
  return null;
}

/** Counts a failure. A disabled endpoint is reported by an event to the other endpoints, in the endpoint list, and in the log. */
async function recordFailure(
  transaction: Transaction,
  scope: Scope,
  { endpoint_id, now }: UsedEndpoint,
): Promise<WebhookEndpointModel | null> {
  const endpoint = await WebhookEndpointModel.fetch(scope, endpoint_id, { database: transaction, lock: true });
  const failures = endpoint.failures + 1;
  const failing_since = endpoint.failing_since ?? now.toISOString();
  const since = toInstant(failing_since);
  const isOver =
    endpoint.endpoint_status === 'enabled' && shouldDisableEndpoint({ since, failures, now: now.getTime() });
  if (!isOver) {
    // The audit log records the disabling of an endpoint, but not each counted failure.
    const counted = { failures, failing_since, updated_at: now.toISOString() };
    await WebhookEndpointModel.in(scope, transaction).where('id', endpoint_id).patch(counted);
    return null;
  }
  const off = {
    endpoint_status: 'disabled' as const,
    disabled_at: now.toISOString(),
    disabled_reason: `it has taken nothing since ${failing_since}`,
  };
  const changes = { failures, failing_since, ...off };
  const changed = await WebhookEndpointModel.change(endpoint, changes, { by: { now }, database: transaction });
  await emit(transaction, 'webhook_endpoint.disabled', { record: changed, by: { now } });
  return changed;
}
