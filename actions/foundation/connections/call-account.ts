/**
 * Calls a tenant's account at a provider (docs/integrations/README.md, "Connections"). Calls are made outside any transaction, and never in
 * an environment with a test clock. No error contains credentials.
 */
import { alreadyExists, FarthingError, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { checkLive } from '../../../core/platform/connection/live.ts';
import type { ProviderSecrets } from '../../../core/platform/connection/record.ts';
import type { ProviderAccount } from '../../../integrations/account.ts';
import { listCapable } from '../../../integrations/find-capability.ts';
import type { AccountCapability } from '../../../integrations/provider.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import { RequestPace } from '../../../storage/concurrency/request-pace.ts';
import { createSealer, isSealed, type SecretOwner } from '../../../storage/foundation/secrets/sealing.ts';
import type { Postgres, ProviderCallSettings } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { EnvironmentModel } from '../../../storage/models/foundation/environment.ts';
import { loadClock } from '../../../storage/models/schedule/environment-clock.ts';
import type { ChangeAuthor } from '../emit.ts';
import { CALL_MS_MAX } from './call-deadline.ts';
import { openConnectionSecrets } from './connection-secrets.ts';
import { loadAccess, type TokenAccess } from './oauth-tokens.ts';
import { BeingSent } from './push-claims.ts';
import { redactError } from './redact-error.ts';
import { stopConnection } from './stop-connection.ts';

export type AccountCallSettings = ProviderCallSettings;

/** The capability of the connection's provider; a destination of exports has none. */
export function findAccountCapability({ provider_type }: Pick<ConnectionModel, 'provider_type'>): AccountCapability {
  const capability = listCapable('account')[provider_type];
  if (!capability) throw notAllowed(`${provider_type} has no accounts: it is a destination of exports`);
  return capability;
}

const PACE = new RequestPace();
/** Longest time that a request waits for its provider's rate limit. */
const PACE_WAIT_MS = 5_000;

type CallTerms = { readonly settings: AccountCallSettings; readonly by: ChangeAuthor };
export type AccountCaller = <Result>(call: (account: ProviderAccount) => Promise<Result>) => Promise<Result>;

/**
 * Checks that the connection may be used, and returns the function that calls its account. Every failure of the provider is a
 * `ProviderError`. If it refuses the credentials, the connection is stopped.
 */
export async function prepareCalls(
  stores: Postgres,
  connection: ConnectionModel,
  { settings, by }: CallTerms,
): Promise<AccountCaller> {
  const secrets = openAccountSecrets(connection, settings);
  await checkCallable(stores, connection, { provider_type: connection.provider_type, secrets });
  return async (call) => {
    let { oauth_tokens } = connection;
    const onAccess = (access: TokenAccess) => {
      oauth_tokens = access.oauth_tokens;
    };
    try {
      return await callWithAccess(stores, connection, { secrets, settings, now: by.now, onAccess }, call);
    } catch (error) {
      if (isUnauthorized(error))
        await stopConnection(
          stores,
          { ...toStoredCredentials(connection), oauth_tokens },
          { reason: error.message, by },
        );
      throw error;
    }
  };
}

function toStoredCredentials({ id, tenant_id, environment_id, secret }: ConnectionModel) {
  return { id, tenant_id, environment_id, secret };
}

type AccessCall = {
  readonly secrets: ProviderSecrets;
  readonly settings: AccountCallSettings;
  readonly now: Date;
  onAccess?(access: TokenAccess): void;
};

/**
 * Calls with the current access token of the connection. If the provider refuses it, the token is refreshed and the
 * call is repeated once.
 */
export async function callWithAccess<Result>(
  stores: Postgres,
  connection: SecretOwner & Pick<ConnectionModel, 'provider_type'>,
  { secrets, settings, now, onAccess }: AccessCall,
  call: (account: ProviderAccount) => Promise<Result>,
): Promise<Result> {
  const { oauth } = findAccountCapability(connection);
  const paced = { settings, pace_name: connection.id, deadline: startDeadline() };
  if (!oauth) return await callWithSecrets(connection, { secrets, ...paced }, call);
  const address = findAddress(connection.provider_type, settings);
  const terms = { oauth, secrets, address, sealing: createSealer(settings.SECRETS_KEYS), now };
  const obtain = async (refused: string | null) => {
    const access = await loadAccess(stores, connection, { ...terms, refused });
    onAccess?.(access);
    return access;
  };
  const callOnce = ({ access_token }: TokenAccess) =>
    callWithSecrets(connection, { secrets: { ...secrets, access_token }, ...paced }, call);
  const access = await obtain(null);
  try {
    return await callOnce(access);
  } catch (error) {
    if (!isUnauthorized(error)) throw error;
  }
  return await callOnce(await obtain(access.access_token));
}

function isUnauthorized(error: unknown): error is ProviderError {
  return error instanceof ProviderError && error.is_unauthorized;
}

/**
 * Decrypts the credentials of an account. They are always stored encrypted, so plain text in the column was not written
 * by this service and is refused.
 */
function openAccountSecrets(connection: ConnectionModel, { SECRETS_KEYS }: AccountCallSettings): ProviderSecrets {
  const { id, status, secret } = connection;
  if (status !== 'published') throw notAllowed(`the connection ${id} is ${status}`);
  const secrets = isSealed(secret) ? openConnectionSecrets(connection, createSealer(SECRETS_KEYS)) : null;
  if (secrets === null) throw new FarthingError('system_error', `the connection ${id} has no sealed credentials`);
  return secrets;
}

/** Throws if the environment never calls a provider, or not with these credentials. */
async function checkCallable({ postgres }: Postgres, scope: Scope, credentials: AccountCredentials): Promise<void> {
  if (!(await canCall({ postgres }, scope)))
    throw notAllowed('an environment with a test clock never calls a provider');
  await checkEnvironment({ postgres }, scope, credentials);
}

export async function canCall({ postgres }: Postgres, scope: Scope): Promise<boolean> {
  return (await loadClock(postgres, scope)) === null;
}

type AccountCredentials = {
  readonly provider_type: ConnectionModel['provider_type'];
  readonly secrets: ProviderSecrets;
};

/** Throws if the credentials move real money in a test environment, or test money in production. */
export async function checkEnvironment(
  { postgres }: Postgres,
  { tenant_id, environment_id }: Scope,
  { provider_type, secrets }: AccountCredentials,
): Promise<void> {
  const environment = await EnvironmentModel.fetch(tenant_id, environment_id, { database: postgres });
  const is_live = findAccountCapability({ provider_type }).detectLive(secrets);
  checkLive({ provider_type, is_live, environment_type: environment.type });
}

type PacedCredentials = {
  readonly secrets: ProviderSecrets;
  readonly settings: AccountCallSettings;
  /** Name under which requests share the provider's rate limit; null for a single request. */
  readonly pace_name?: string | null;
  /** After this signal the call begins no further request. */
  readonly deadline?: AbortSignal;
};

function startDeadline(): AbortSignal {
  return AbortSignal.timeout(CALL_MS_MAX);
}

/**
 * Calls an account with credentials that are not stored yet. For a provider with OAuth they contain the access token.
 */
export async function callWithSecrets<Result>(
  { provider_type }: Pick<ConnectionModel, 'provider_type'>,
  { secrets, settings, pace_name = null, deadline = startDeadline() }: PacedCredentials,
  call: (account: ProviderAccount) => Promise<Result>,
): Promise<Result> {
  const capability = findAccountCapability({ provider_type });
  const address = findAddress(provider_type, settings);
  const { requests_per_second } = capability;
  const limit = typeof requests_per_second === 'function' ? requests_per_second(secrets) : requests_per_second;
  const beforeRequest = async () => {
    if (pace_name !== null && limit !== undefined) await waitForPace(pace_name, limit);
    checkCallTime(deadline);
  };
  try {
    const account = await capability.open(secrets, { address, beforeRequest });
    return await call(account);
  } catch (error) {
    throw redactError(error, secrets);
  }
}

/** Ends a call that nobody awaits any more before its next request: its record may be claimed by another attempt. */
function checkCallTime(deadline: AbortSignal): void {
  if (deadline.aborted) throw new ProviderError('wait', `the call took longer than ${CALL_MS_MAX} ms`);
}

async function waitForPace(name: string, requests_per_second: number): Promise<void> {
  const retry_after_seconds = await PACE.waitForTurn(name, requests_per_second, PACE_WAIT_MS);
  if (retry_after_seconds !== null)
    throw new ProviderError('wait', 'too many requests of this connection wait for the limit of the provider', {
      retry_after_seconds,
    });
}

export function findAddress(provider_type: string, { PROVIDER_ADDRESSES }: AccountCallSettings): URL | null {
  const prefix = `${provider_type}=`;
  const entry = PROVIDER_ADDRESSES.find((one) => one.startsWith(prefix));
  return entry === undefined ? null : new URL(entry.slice(prefix.length));
}

/** Converts an error for the answer to a request that called the provider; other errors are returned unchanged. */
export function toAnswerError(error: unknown, { provider_type }: Pick<ConnectionModel, 'provider_type'>): unknown {
  if (!(error instanceof ProviderError)) return error;
  if (error instanceof BeingSent) return alreadyExists(error.message, { provider_type });
  const { error_class, message, provider_code, retry_after_seconds } = error;
  const why = `${provider_type}: ${message}`;
  if (error_class !== 'wait') return notAllowed(why, { provider_type, provider_code });
  const wait = retry_after_seconds === null ? {} : { retry_after_seconds };
  return new FarthingError('service_unavailable', why, { details: { provider_type, provider_code, ...wait } });
}
