/**
 * OAuth tokens of a connection. If an access token has expired or is refused, only one process at a time refreshes it, and stores the new
 * tokens before their first use (docs/decisions/0028-oauth-tokens.md).
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { FarthingError } from '../../../core/foundation/error.ts';
import { MINUTE_MS } from '../../../core/foundation/time/durations.ts';
import type { ProviderSecrets } from '../../../core/platform/connection/record.ts';
import type { IssuedTokens, OAuthCapability } from '../../../integrations/oauth.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import { isUnavailable } from '../../../storage/foundation/failure.ts';
import type { SecretOwner, SecretSealer } from '../../../storage/foundation/secrets/sealing.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import {
  endTokenLease,
  readTokens,
  storeTokens,
  takeTokenLease,
} from '../../../storage/models/foundation/token-lease.ts';
import { redactError } from './redact-error.ts';

export type StoredTokens = {
  /** Access token; null until the first refresh. */
  readonly access_token: string | null;
  /** Expiry of the access token; null if unknown, because a client supplied the token. */
  readonly expires_at: string | null;
  readonly refresh_token: string | null;
};

/** A token is refreshed five minutes before it expires, so that it remains valid for all calls of one push. */
const EXPIRY_SLACK_MS = 5 * MINUTE_MS;
/** Pause between two checks whether the process that refreshes the tokens has finished. */
const LEASE_POLL_MS = 100;
/** Maximum number of polls for the lease, about 20 seconds in total. */
const LEASE_POLLS_MAX = 200;
/**
 * Attempts to store new tokens while Postgres is unreachable. If they were lost, the connection would have to be
 * granted again, because the provider may no longer accept the old ones.
 */
const STORE_ATTEMPTS = 5;
const STORE_PAUSE_MS = 1_000;

/** Separates OAuth tokens from the other credentials of a request; `tokens` is null if the request has none. */
export function splitTokens(credentials: ProviderSecrets): { secrets: ProviderSecrets; tokens: StoredTokens | null } {
  const { access_token, refresh_token, ...secrets } = credentials;
  if (access_token === undefined && refresh_token === undefined) return { secrets, tokens: null };
  const toText = (token: unknown) => (typeof token === 'string' ? token : null);
  const tokens = { access_token: toText(access_token), expires_at: null, refresh_token: toText(refresh_token) };
  return { secrets, tokens };
}

export function toStoredTokens(issued: IssuedTokens, now: Date): StoredTokens {
  const { access_token, refresh_token, expires_in_seconds } = issued;
  const expires_at = new Date(now.getTime() + expires_in_seconds * 1_000).toISOString();
  return { access_token, expires_at, refresh_token };
}

export function sealTokens(tokens: StoredTokens, owner: SecretOwner, sealing: SecretSealer): string {
  return sealing.seal(JSON.stringify(tokens), owner);
}

type RefreshTerms = {
  readonly oauth: OAuthCapability;
  readonly secrets: ProviderSecrets;
  readonly address: URL | null;
  readonly sealing: SecretSealer;
  readonly now: Date;
};
/** Terms of a request for an access token. `refused` is the token that the provider has just refused. */
type AccessTerms = RefreshTerms & { readonly refused: string | null };
export type TokenAccess = { readonly access_token: string; readonly oauth_tokens: string };

/** Returns the access token for the next call, and the sealed tokens that contain it. */
export async function loadAccess(stores: Postgres, connection: SecretOwner, terms: AccessTerms): Promise<TokenAccess> {
  for (let polls = 1; ; polls++) {
    const oauth_tokens = await readTokens(stores, connection);
    if (!oauth_tokens) throw new FarthingError('system_error', `the connection ${connection.id} has no tokens`);
    const tokens = JSON.parse(terms.sealing.open(oauth_tokens, connection)) as StoredTokens;
    if (isUsable(tokens, terms)) return { access_token: tokens.access_token, oauth_tokens };
    const refreshed = await refreshAlone(stores, connection, { ...terms, tokens, oauth_tokens });
    if (refreshed !== null) return refreshed;
    if (polls === LEASE_POLLS_MAX)
      throw new ProviderError('wait', 'another process refreshes the access token', { retry_after_seconds: 5 });
    await wait(LEASE_POLL_MS);
  }
}

function isUsable(
  tokens: StoredTokens,
  { now, refused }: Pick<AccessTerms, 'now' | 'refused'>,
): tokens is StoredTokens & { access_token: string } {
  const { access_token, expires_at } = tokens;
  if (access_token === null || access_token === refused) return false;
  return expires_at === null || Date.parse(expires_at) - now.getTime() > EXPIRY_SLACK_MS;
}

type Refresh = RefreshTerms & { readonly tokens: StoredTokens; readonly oauth_tokens: string };

/** Refreshes the tokens under the lease. Null if another process is refreshing them or has done so. */
async function refreshAlone(
  stores: Postgres,
  connection: SecretOwner,
  { tokens, oauth_tokens, ...terms }: Refresh,
): Promise<TokenAccess | null> {
  const holder = randomUUID();
  if (!(await takeTokenLease(stores, connection, { holder, oauth_tokens }))) return null;
  let renewed: StoredTokens;
  try {
    renewed = await refreshTokens(tokens, terms);
  } catch (error) {
    await endTokenLease(stores, connection, holder);
    throw error;
  }
  const sealed = sealTokens(renewed, connection, terms.sealing);
  const isStored = await storeDurably(() => storeTokens(stores, connection, { holder, oauth_tokens: sealed }));
  return isStored ? { access_token: renewed.access_token!, oauth_tokens: sealed } : null;
}

/** Requests new tokens. For stored tokens, only the process with the lease calls this. */
export async function refreshTokens(
  { refresh_token }: StoredTokens,
  { oauth, secrets, address, now }: Omit<RefreshTerms, 'sealing'>,
): Promise<StoredTokens> {
  if (refresh_token === null)
    throw new ProviderError('person', 'there is no refresh token: grant access again (POST /oauth/init)', {
      is_unauthorized: true,
    });
  try {
    return toStoredTokens(await oauth.refresh(secrets, refresh_token, { address }), now);
  } catch (error) {
    throw redactError(error, { ...secrets, refresh_token });
  }
}

async function storeDurably(store: () => Promise<boolean>): Promise<boolean> {
  for (let attempt = 1; ; attempt++)
    try {
      return await store();
    } catch (error) {
      if (attempt === STORE_ATTEMPTS || !isUnavailable(error)) throw error;
      await wait(STORE_PAUSE_MS);
    }
}
