/** Creates, updates, re-enables and deletes webhook endpoints, and rotates their secrets; a secret is shown once. */
import { randomBytes } from 'node:crypto';
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { HOUR_MS } from '../../../core/foundation/time/durations.ts';
import type { WebhookEndpoint } from '../../../core/platform/webhook/record.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { SecretSealer } from '../../../storage/foundation/secrets/sealing.ts';
import type { Postgres, Transaction } from '../../../storage/foundation/stores.ts';
import { WebhookDeliveryModel } from '../../../storage/models/delivery/webhook-delivery.ts';
import { WebhookEndpointModel } from '../../../storage/models/delivery/webhook-endpoint.ts';
import { EnvironmentModel } from '../../../storage/models/foundation/environment.ts';

type EndpointFields = Pick<WebhookEndpoint, 'url' | 'description' | 'event_names' | 'metadata'>;
type EndpointSecret = { endpoint: WebhookEndpointModel; secret: string };
/** Secrets are stored sealed. */
type SecretSealing = { readonly sealing: SecretSealer };

/** Maximum number of endpoints, because each event may create a delivery for each of them. */
const ENDPOINTS_MAX = 50;

export async function createEndpoint(
  { postgres }: Postgres,
  scope: Scope,
  { fields, author, sealing }: { fields: EndpointFields; author: Author } & SecretSealing,
): Promise<EndpointSecret> {
  const secret = makeSecret();
  const id = newId('webhook_endpoint', author.now.getTime());
  const record = {
    id,
    ...fields,
    endpoint_status: 'enabled',
    secret: sealing.seal(secret, { ...scope, id }),
    secret_hint: buildHint(secret),
    ...createdBy(author),
  };
  const endpoint = await postgres.transaction(async (database) => {
    // The lock serializes concurrent creations, so each counts the endpoints of the others.
    await EnvironmentModel.fetch(scope.tenant_id, scope.environment_id, { database, lock: true });
    const { length: has } = await WebhookEndpointModel.in(scope, database).where('status', 'published').select('id');
    if (has >= ENDPOINTS_MAX) throw notAllowed(`an environment has ${ENDPOINTS_MAX} endpoints of webhooks at most`);
    return WebhookEndpointModel.add(scope, record, { database });
  });
  return { endpoint, secret };
}

type EndpointChange = {
  id: string;
  changes: Partial<EndpointFields & Pick<WebhookEndpoint, 'endpoint_status'>>;
  author: Author;
};

/** Re-enabling an endpoint resets its failures. */
export async function changeEndpoint(
  { postgres }: Postgres,
  scope: Scope,
  { id, changes, author }: EndpointChange,
): Promise<WebhookEndpointModel> {
  return postgres.transaction(async (database) => {
    const endpoint = await lockEndpoint(scope, id, database);
    const to = changes.endpoint_status;
    const isMoved = to !== undefined && to !== endpoint.endpoint_status;
    const on = { disabled_at: null, disabled_reason: null, failing_since: null, failures: 0 };
    const off = { disabled_at: author.now.toISOString(), disabled_reason: 'it was disabled by hand' };
    const moved = isMoved ? (to === 'enabled' ? on : off) : {};
    return WebhookEndpointModel.change(endpoint, { ...changes, ...moved }, { by: author, database });
  });
}

/** During the overlap the old secret signs too, so that the receiver can switch at any time. */
type SecretRotation = { id: string; overlap_hours: number; author: Author };

export async function rotateSecret(
  { postgres }: Postgres,
  scope: Scope,
  { id, overlap_hours, author, sealing }: SecretRotation & SecretSealing,
): Promise<EndpointSecret> {
  return postgres.transaction(async (database) => {
    const endpoint = await lockEndpoint(scope, id, database);
    const secret = makeSecret();
    const until = new Date(author.now.getTime() + overlap_hours * HOUR_MS).toISOString();
    const before =
      overlap_hours > 0
        ? { previous_secret: sealing.seal(endpoint.secret, endpoint), previous_secret_expires_at: until }
        : { previous_secret: null, previous_secret_expires_at: null };
    const changes = { secret: sealing.seal(secret, endpoint), secret_hint: buildHint(secret), ...before };
    return { endpoint: await WebhookEndpointModel.change(endpoint, changes, { by: author, database }), secret };
  });
}

/** Deletes an endpoint. Pending deliveries fail; past deliveries remain readable. */
export async function deleteEndpoint(
  { postgres }: Postgres,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  await postgres.transaction(async (database) => {
    const endpoint = await lockEndpoint(scope, id, database);
    const gone = { status: 'deleted' as const, secret: '', previous_secret: null, previous_secret_expires_at: null };
    await WebhookEndpointModel.change(endpoint, gone, { by: author, database });
    await WebhookDeliveryModel.in(scope, database)
      .where({ endpoint_id: id, delivery_status: 'pending' })
      .patch({ delivery_status: 'failed', next_attempt_at: null, failure_reason: 'the endpoint was deleted' });
  });
}

export function lockEndpoint(scope: Scope, id: string, database: Transaction): Promise<WebhookEndpointModel> {
  return WebhookEndpointModel.fetchPublished(scope, id, { database, lock: true });
}

const SECRET_BYTES = 32;

/** Makes a secret in the format of Standard Webhooks. */
function makeSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}

function buildHint(secret: string): string {
  return `${secret.slice(0, 'whsec_'.length + 2)}***${secret.slice(-4)}`;
}
