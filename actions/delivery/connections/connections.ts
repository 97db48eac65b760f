/** Creates and changes connections; their credentials are stored sealed (docs/integrations/README.md, "Connections"). */

import { alreadyExists, invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import type { Connection, ConnectionSecrets, ProviderSecrets } from '../../../core/platform/connection/record.ts';
import { checkSyncConfig } from '../../../core/platform/connection/sync-config.ts';
import type { ProviderAccount } from '../../../integrations/account.ts';
import { listCapable } from '../../../integrations/find-capability.ts';
import type { OAuthCapability } from '../../../integrations/oauth.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { createSealer } from '../../../storage/foundation/secrets/sealing.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { activateConnection } from '../../foundation/connections/activate-connection.ts';
import {
  type AccountCallSettings,
  callWithAccess,
  callWithSecrets,
  canCall,
  checkEnvironment,
  findAddress,
  toAnswerError,
} from '../../foundation/connections/call-account.ts';
import { sealConnectionSecrets } from '../../foundation/connections/connection-secrets.ts';
import {
  refreshTokens,
  type StoredTokens,
  sealTokens,
  splitTokens,
} from '../../foundation/connections/oauth-tokens.ts';
import { checkNothingPends } from './archive-connection.ts';
import { deriveBaseConfig } from './base-config.ts';
import { type ComparedIdentity, checkSameAccount, chooseAccountId, findMappedRecords } from './same-account.ts';
import { hasSecrets } from './secret-shapes.ts';

type NewConnection = Pick<Connection, 'name' | 'provider_type' | 'metadata' | 'sync_config'> & {
  readonly encrypted_secret_data: ConnectionSecrets | null;
};
export type ConnectionSettings = AccountCallSettings & { readonly EXPORT_DIRECTORY?: string | undefined };
type CreateConnectionInput = {
  fields: NewConnection;
  /** Tokens that the owner granted in a browser (oauth.ts). Default: the tokens among the credentials. */
  tokens?: StoredTokens;
  settings: ConnectionSettings;
  author: Author;
};

export async function createConnection(
  { postgres }: Postgres,
  scope: Scope,
  { fields: { encrypted_secret_data, ...fields }, tokens: granted, settings, author }: CreateConnectionInput,
): Promise<ConnectionModel> {
  const { provider_type, sync_config } = fields;
  checkProvider(provider_type, settings);
  if (sync_config) checkSyncConfig(sync_config, deriveBaseConfig(fields), provider_type);
  const { secrets, tokens } = selectCredentials(provider_type, encrypted_secret_data, granted);
  if (tokens === null && findOAuth(provider_type))
    throw invalid(
      `encrypted_secret_data.${provider_type}.refresh_token`,
      'is required; POST /oauth/init gets one in a browser',
    );
  const has_account = hasAccount(provider_type);
  if (has_account) await checkOnlyOne({ postgres }, scope, provider_type);
  const identified = has_account
    ? await identifyAccount({ postgres }, scope, { provider_type, secrets, tokens, settings, now: author.now })
    : null;

  const id = newId('connection', author.now.getTime());
  const sealing = createSealer(settings.SECRETS_KEYS);
  const current_tokens = identified?.tokens ?? tokens;
  const record = {
    id,
    ...fields,
    has_account,
    provider_account_id: identified?.identity.provider_account_id ?? null,
    secret: sealConnectionSecrets(secrets, { ...scope, id, provider_type }, sealing),
    oauth_tokens: current_tokens === null ? '' : sealTokens(current_tokens, { ...scope, id }, sealing),
    ...createdBy(author),
  };
  return ConnectionModel.add(scope, record, { database: postgres, conflict: describeConflict(provider_type) });
}

/** Refuses a provider that neither has accounts nor receives exports. */
function checkProvider(provider_type: Connection['provider_type'], { EXPORT_DIRECTORY }: ConnectionSettings): void {
  const destinations = listCapable('export_destination');
  const allowed = [...Object.keys(destinations), ...Object.keys(listCapable('account'))];
  if (!allowed.includes(provider_type))
    throw invalid('provider_type', `${provider_type} is not there yet`, { allowed });
  if (destinations[provider_type]?.openFile && EXPORT_DIRECTORY === undefined)
    throw invalid('provider_type', 'this service has no directory for exports (EXPORT_DIRECTORY)');
}

function hasAccount(provider_type: Connection['provider_type']): boolean {
  return Object.hasOwn(listCapable('account'), provider_type);
}

function findOAuth(provider_type: Connection['provider_type']): OAuthCapability | undefined {
  return listCapable('account')[provider_type]?.oauth;
}

/** Separates OAuth tokens from the other credentials, because a refresh replaces the tokens alone. */
function selectCredentials(
  provider_type: Connection['provider_type'],
  given: ConnectionSecrets | null,
  granted: StoredTokens | undefined,
): { secrets: ProviderSecrets | null; tokens: StoredTokens | null } {
  const secrets = selectSecrets(provider_type, given);
  if (secrets === null || !findOAuth(provider_type)) return { secrets, tokens: null };
  const split = splitTokens(secrets);
  return { secrets: split.secrets, tokens: granted ?? split.tokens };
}

/** Selects the credentials of the connection's own provider; refuses those of another provider. */
function selectSecrets(provider_type: Connection['provider_type'], given: ConnectionSecrets | null) {
  const others = Object.entries(given ?? {}).filter(([name, secrets]) => secrets !== null && name !== provider_type);
  for (const [name] of others)
    throw invalid(`encrypted_secret_data.${name}`, `a connection to ${provider_type} has no such credentials`);
  const secrets = given?.[provider_type] ?? null;
  if (secrets === null && hasSecrets(provider_type))
    throw invalid(`encrypted_secret_data.${provider_type}`, 'is required: the credentials of the connection');
  return secrets;
}

/**
 * Refuses a second connection to the account at a provider before the provider is called. A unique index decides
 * between concurrent requests.
 */
async function checkOnlyOne({ postgres }: Postgres, scope: Scope, provider_type: Connection['provider_type']) {
  const [existing] = await ConnectionModel.in(scope, postgres)
    .where({ provider_type, has_account: true, status: 'published' })
    .select('id')
    .limit(1);
  if (existing) throw alreadyExists(describeConflict(provider_type), { id: existing.id });
}

function describeConflict(provider_type: Connection['provider_type']): string {
  return `this environment has a connection to ${provider_type} already: change it, or archive it first`;
}

type CheckedCredentials = {
  readonly provider_type: Connection['provider_type'];
  readonly secrets: ProviderSecrets | null;
  readonly tokens: StoredTokens | null;
  readonly settings: AccountCallSettings;
  readonly now: Date;
  /** Connection that gets the credentials. Its stored tokens are used if the credentials contain none. */
  readonly connection?: ConnectionModel;
};
type IdentifiedAccount = { readonly identity: ComparedIdentity; readonly tokens: StoredTokens | null };

/**
 * Checks new credentials with the provider. Returns null in an environment with a test clock, which never calls a
 * provider.
 */
async function identifyAccount(
  stores: Postgres,
  scope: Scope,
  { provider_type, secrets, tokens, settings, now, connection }: CheckedCredentials,
): Promise<IdentifiedAccount | null> {
  if (secrets === null) throw invalid(`encrypted_secret_data.${provider_type}`, 'is required');
  checkSealed(settings);
  await checkEnvironment(stores, scope, { provider_type, secrets });
  if (!(await canCall(stores, scope))) return null;
  const mapped = connection ? await findMappedRecords(stores, connection) : null;
  const identify = async (account: ProviderAccount) =>
    connection && mapped
      ? checkSameAccount(account, { known: connection, mapped })
      : { ...(await account.identify()), is_same: true };
  try {
    if (connection && tokens === null && connection.oauth_tokens !== '') {
      const identity = await callWithAccess(stores, connection, { secrets, settings, now }, identify);
      return { identity, tokens: null };
    }
    const usable = await completeTokens({ provider_type, secrets, tokens, settings, now });
    const access = usable === null ? {} : { access_token: usable.access_token };
    const credentials = { secrets: { ...secrets, ...access }, settings };
    return { identity: await callWithSecrets({ provider_type }, credentials, identify), tokens: usable };
  } catch (error) {
    throw toAnswerError(error, { provider_type });
  }
}

export function checkSealed({ SECRETS_KEYS }: AccountCallSettings): void {
  if (SECRETS_KEYS.length === 0)
    throw notAllowed('credentials of an account are stored only if this service has a key for them (SECRETS_KEYS)');
}

/** Exchanges a refresh token that came without an access token for an access token. */
async function completeTokens({ provider_type, secrets, tokens, settings, now }: CheckedCredentials) {
  const oauth = findOAuth(provider_type);
  if (!oauth || secrets === null || tokens === null || tokens.access_token !== null) return tokens;
  return await refreshTokens(tokens, { oauth, secrets, address: findAddress(provider_type, settings), now });
}

type ConnectionChange = {
  id: string;
  changes: Partial<Omit<NewConnection, 'provider_type'>>;
  tokens?: StoredTokens;
  settings: ConnectionSettings;
  author: Author;
};

/**
 * Changes a connection. If the provider accepts new credentials, a connection that needed attention becomes active.
 * Credentials without tokens leave the stored tokens unchanged.
 */
export async function changeConnection(
  { postgres }: Postgres,
  scope: Scope,
  { id, changes: { encrypted_secret_data, ...changes }, tokens: granted, settings, author }: ConnectionChange,
): Promise<ConnectionModel> {
  const found = await postgres.transaction((database) => ConnectionModel.fetchChangeable(scope, id, database));
  const { provider_type } = found;
  if (changes.sync_config) checkSyncConfig(changes.sync_config, deriveBaseConfig(found), provider_type);
  const { secrets, tokens } = encrypted_secret_data
    ? selectCredentials(provider_type, encrypted_secret_data, granted)
    : { secrets: null, tokens: null };
  const checked = { provider_type, secrets, tokens, settings, now: author.now, connection: found };
  const identified = secrets && found.has_account ? await identifyAccount({ postgres }, scope, checked) : null;

  return postgres.transaction(async (database) => {
    const connection = await ConnectionModel.fetchChangeable(scope, id, database);
    if (secrets === null) return ConnectionModel.change(connection, changes, { by: author, database });
    // Another account would not know the outcome of a pending charge, and the charge would be made again in it.
    if (found.has_account && !identified?.identity.is_same) await checkNothingPends(database, connection);
    const sealing = createSealer(settings.SECRETS_KEYS);
    const current_tokens = identified?.tokens ?? tokens;
    const renewed = {
      ...changes,
      secret: sealConnectionSecrets(secrets, connection, sealing),
      ...(current_tokens === null ? {} : replaceTokens(sealTokens(current_tokens, connection, sealing))),
      provider_account_id: chooseAccountId(connection, identified?.identity ?? null),
    };
    return activateConnection(database, connection, { changes: renewed, by: author });
  });
}

/** Replaces the tokens and removes the lease of a refresh in progress, so that the refresh does not overwrite them. */
function replaceTokens(oauth_tokens: string) {
  return { oauth_tokens, refreshing_by: null, refreshing_until: null };
}
