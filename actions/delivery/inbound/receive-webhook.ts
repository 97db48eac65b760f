/**
 * Receives a webhook of a provider (docs/integrations/README.md, "Webhooks of providers"): checks its signature, stores
 * its events and enqueues their processing. If the tenant, environment or connection is unknown, the response and its
 * duration are those of a wrong signature, so that ids cannot be probed.
 */
import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { InboundEvent } from '../../../integrations/account.ts';
import { listCapable } from '../../../integrations/find-capability.ts';
import type { AccountCapability, InboundWebhook } from '../../../integrations/provider.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { addReadJob, storeProviderEvents } from '../../../storage/queue/provider-events.ts';
import { type AccountCallSettings, canCall } from '../../foundation/connections/call-account.ts';
import { checkEvents } from './check-events.ts';
import { selectWebhookSecrets } from './webhook-secrets.ts';

type ReceivingCapability = AccountCapability &
  Required<Pick<AccountCapability, 'webhook_secrets' | 'verifyWebhook' | 'parseWebhook'>>;

/** Providers whose webhooks are received. */
export function listReceivedProviders(): string[] {
  return Object.entries(listCapable('account')).flatMap(([name, capability]) =>
    receivesWebhooks(capability) ? [name] : [],
  );
}

/** Form of a provider's webhooks (integrations/provider.ts). */
export function describeWebhooks(provider_type: string) {
  const capability = listCapable('account')[provider_type];
  const { signature_headers = [], webhook_query, webhook_body_type, wants_empty_answer = false } = capability ?? {};
  return { signature_headers, webhook_query, webhook_body_type, wants_empty_answer };
}

function receivesWebhooks(capability: AccountCapability): capability is ReceivingCapability {
  const { webhook_secrets, verifyWebhook, parseWebhook } = capability;
  return webhook_secrets !== undefined && verifyWebhook !== undefined && parseWebhook !== undefined;
}

type ReceivedWebhook = {
  readonly provider_type: string;
  readonly webhook: InboundWebhook;
  readonly settings: AccountCallSettings;
  readonly onUnreadable: (connection_id: string) => void;
};

/** Returns the number of events that were not stored before. */
export async function receiveWebhook(
  { postgres }: Postgres,
  scope: Scope,
  { provider_type, webhook, settings, onUnreadable }: ReceivedWebhook,
): Promise<number> {
  const capability = listCapable('account')[provider_type];
  if (!capability || !receivesWebhooks(capability)) throw refuse();
  const [connection] = await ConnectionModel.in(scope, postgres).where({
    ...{ provider_type, has_account: true, status: 'published' },
  });
  const { webhook_secrets: names } = capability;
  const { secrets, is_known } = selectWebhookSecrets({ provider_type, names, connection, settings, onUnreadable });
  capability.verifyWebhook(secrets, webhook);
  if (!connection || !is_known) throw refuse();
  const events = capability.parseWebhook(webhook);
  checkEvents(events);
  const is_called = await canCall({ postgres }, scope);
  return postgres.transaction(async (transaction) => {
    const rows = events.map((event) => toStoredEvent(event, { connection, is_called, now: webhook.now }));
    const count = await storeProviderEvents(transaction, connection, rows);
    if (count > 0) await addReadJob(transaction, connection);
    return count;
  });
}

function refuse(): FarthingError {
  return new FarthingError('permission_denied', 'the signature is not valid', { http_status_code: 401 });
}

type StoredTerms = { readonly connection: ConnectionModel; readonly is_called: boolean; readonly now: Date };

function toStoredEvent(event: InboundEvent, { connection, is_called, now }: StoredTerms) {
  const reason = explainIgnored(event, { connection, is_called });
  const { provider_event_id, event_type, occurred_at, subjects } = event;
  return {
    id: newId('provider_event', now.getTime()),
    ...{ provider_event_id, event_type, occurred_at, subjects: [...subjects], reason },
    event_state: reason === null ? ('received' as const) : ('ignored' as const),
    next_attempt_at: reason === null ? now.toISOString() : null,
    created_at: now.toISOString(),
  };
}

/** Returns the reason for which the event is ignored; null if it is processed. */
function explainIgnored(
  { subjects, provider_account_id }: InboundEvent,
  { connection, is_called }: Pick<StoredTerms, 'connection' | 'is_called'>,
): string | null {
  const own = connection.provider_account_id;
  if (provider_account_id !== null && own !== null && provider_account_id !== own)
    return `it is about the account ${provider_account_id}, which is not that of the connection`;
  if (subjects.length === 0) return 'events of this type have no effect';
  return is_called ? null : 'an environment with a test clock never calls a provider';
}
