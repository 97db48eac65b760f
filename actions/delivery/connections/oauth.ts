/**
 * Connections whose owner grants access in a browser (docs/integrations/README.md, "OAuth"). A session stores the
 * sealed credentials and the state of one flow, and is used once.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { FarthingError, invalid, notAllowed, notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { MINUTE_MS } from '../../../core/foundation/time/durations.ts';
import type { Connection, ProviderSecrets } from '../../../core/platform/connection/record.ts';
import { checkSyncConfig } from '../../../core/platform/connection/sync-config.ts';
import { listCapable } from '../../../integrations/find-capability.ts';
import type { OAuthCapability, OAuthGrant } from '../../../integrations/oauth.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { createSealer } from '../../../storage/foundation/secrets/sealing.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { storeOAuthSession, takeOAuthSession } from '../../../storage/models/foundation/oauth-sessions.ts';
import {
  type AccountCallSettings,
  canCall,
  checkEnvironment,
  findAddress,
  toAnswerError,
} from '../../foundation/connections/call-account.ts';
import { type StoredTokens, toStoredTokens } from '../../foundation/connections/oauth-tokens.ts';
import { redactError } from '../../foundation/connections/redact-error.ts';
import { deriveBaseConfig } from './base-config.ts';
import { changeConnection, checkSealed, createConnection } from './connections.ts';
import { parseCredentials } from './secret-shapes.ts';

/** Providers whose account owner grants access in a browser. */
export const OAUTH_PROVIDERS = Object.entries(listCapable('account')).flatMap(([name, { oauth }]) =>
  oauth ? [name] : [],
);

const SESSION_MS = 10 * MINUTE_MS;
const STATE_BYTES = 32;

type FlowFields = Pick<Connection, 'name' | 'metadata' | 'sync_config'>;
type FlowStart = FlowFields & {
  readonly provider: Connection['provider_type'];
  readonly credentials: Readonly<Record<string, string>>;
};
type SessionSecret = { readonly state: string; readonly credentials: ProviderSecrets; readonly fields: FlowFields };

export async function startOAuth(
  { postgres }: Postgres,
  scope: Scope,
  { flow, settings, author }: { flow: FlowStart; settings: AccountCallSettings; author: Author },
): Promise<{ oauth_url: string; session_id: string }> {
  const { provider: provider_type, name, metadata, sync_config } = flow;
  const oauth = findOAuth(provider_type);
  const credentials = parseCredentials(oauth.credentials, flow.credentials, 'credentials');
  if (sync_config) checkSyncConfig(sync_config, deriveBaseConfig({ provider_type }), provider_type);
  checkSealed(settings);
  await checkFlow({ postgres }, scope, { provider_type, secrets: credentials });

  const session_id = newId('oauth_session', author.now.getTime());
  const state = randomBytes(STATE_BYTES).toString('base64url');
  const secret: SessionSecret = { state, credentials, fields: { name, metadata, sync_config } };
  await storeOAuthSession({ postgres }, scope, {
    id: session_id,
    provider_type,
    secret: createSealer(settings.SECRETS_KEYS).seal(JSON.stringify(secret), { ...scope, id: session_id }),
    expires_at: new Date(author.now.getTime() + SESSION_MS),
    created_at: author.now,
    created_by: author.user_id,
  });
  const address = findAddress(provider_type, settings);
  return { oauth_url: oauth.buildAuthorizationUrl(credentials, state, { address }).href, session_id };
}

/** Checks the environment at the start and at the end of a flow: it may get a test clock or another type in between. */
async function checkFlow(
  stores: Postgres,
  scope: Scope,
  credentials: { provider_type: Connection['provider_type']; secrets: ProviderSecrets },
): Promise<void> {
  await checkEnvironment(stores, scope, credentials);
  if (!(await canCall(stores, scope))) throw notAllowed('an environment with a test clock never calls a provider');
}

type OAuthReturn = OAuthGrant & {
  readonly provider: Connection['provider_type'];
  readonly session_id: string;
  readonly state: string;
};

/** Creates the connection. If one to this provider exists, it gets the new access and its mappings stay. */
export async function completeOAuth(
  stores: Postgres,
  scope: Scope,
  { returned, settings, author }: { returned: OAuthReturn; settings: AccountCallSettings; author: Author },
): Promise<ConnectionModel> {
  const { provider: provider_type, state, session_id, ...grant } = returned;
  const oauth = findOAuth(provider_type);
  const session = await takeSession(stores, scope, { provider_type, session_id, settings, now: author.now });
  if (!isEqual(session.state, state))
    throw new FarthingError('permission_denied', 'the state is not the one of this session: begin again');
  await checkFlow(stores, scope, { provider_type, secrets: session.credentials });
  const address = findAddress(provider_type, settings);
  let granted: Awaited<ReturnType<OAuthCapability['exchangeCode']>>;
  try {
    granted = await oauth.exchangeCode(session.credentials, grant, { address });
  } catch (error) {
    throw toAnswerError(redactError(error, { ...session.credentials, code: grant.code }), { provider_type });
  }
  const { secrets } = granted;
  const tokens = toStoredTokens(granted.tokens, author.now);
  return await storeConnection(stores, scope, {
    provider_type,
    fields: session.fields,
    secrets,
    tokens,
    settings,
    author,
  });
}

function findOAuth(provider_type: Connection['provider_type']): OAuthCapability {
  const oauth = listCapable('account')[provider_type]?.oauth;
  if (!oauth) throw invalid('provider', `${provider_type} has no OAuth here`, { allowed: OAUTH_PROVIDERS });
  return oauth;
}

type SessionKey = {
  readonly provider_type: string;
  readonly session_id: string;
  readonly settings: AccountCallSettings;
  readonly now: Date;
};

/** Uses up the session before `state` is compared, so that a session permits only one try. */
async function takeSession(
  stores: Postgres,
  scope: Scope,
  { provider_type, session_id, settings, now }: SessionKey,
): Promise<SessionSecret> {
  const secret = await takeOAuthSession(stores, scope, { id: session_id, provider_type, now });
  if (secret === null) throw notFound('oauth session', session_id);
  return JSON.parse(createSealer(settings.SECRETS_KEYS).open(secret, { ...scope, id: session_id })) as SessionSecret;
}

function isEqual(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(given)];
  return one.length === other.length && timingSafeEqual(one, other);
}

type GrantedConnection = {
  readonly provider_type: Connection['provider_type'];
  readonly fields: FlowFields;
  readonly secrets: ProviderSecrets;
  readonly tokens: StoredTokens;
  readonly settings: AccountCallSettings;
  readonly author: Author;
};

async function storeConnection(
  stores: Postgres,
  scope: Scope,
  { provider_type, fields, secrets, ...common }: GrantedConnection,
): Promise<ConnectionModel> {
  const encrypted_secret_data = { [provider_type]: secrets };
  const [existing] = await ConnectionModel.in(scope, stores.postgres)
    .where({ provider_type, has_account: true, status: 'published' })
    .select('id')
    .limit(1);
  if (!existing)
    return createConnection(stores, scope, { fields: { ...fields, provider_type, encrypted_secret_data }, ...common });
  const { name, metadata, sync_config } = fields;
  const changes = {
    name,
    ...(metadata === null ? {} : { metadata }),
    ...(sync_config === null ? {} : { sync_config }),
    encrypted_secret_data,
  };
  return changeConnection(stores, scope, { id: existing.id, changes, ...common });
}
