/**
 * Access to an account that its owner grants in a browser (RFC 6749, section 4.1). The access token lives for about an hour. A refresh may
 * replace the refresh token, and the provider then accepts only the new one (docs/decisions/0028-oauth-tokens.md).
 */
import type { z } from 'zod';
import type { ProviderSecrets } from '../core/platform/connection/record.ts';
import type { AccountSettings } from './account.ts';

/** Tokens as the provider issues them. */
export type IssuedTokens = {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_in_seconds: number;
};

/** Parameters of the address to which the provider sends the browser back. */
export type OAuthGrant = {
  readonly code: string;
  readonly realm_id?: string | undefined;
  readonly organization_id?: string | undefined;
  readonly organization_name?: string | undefined;
  readonly location?: string | undefined;
  readonly accounts_server?: string | undefined;
};

export type OAuthCapability = {
  /** Credentials with which a flow begins, an object of texts; those of the account without what the grant adds. */
  readonly credentials: z.ZodObject;
  buildAuthorizationUrl(credentials: ProviderSecrets, state: string, settings: AccountSettings): URL;
  /** Fails as a `ProviderError`. `secrets` are those of the account, without its tokens. */
  exchangeCode(
    credentials: ProviderSecrets,
    grant: OAuthGrant,
    settings: AccountSettings,
  ): Promise<{ readonly secrets: ProviderSecrets; readonly tokens: IssuedTokens }>;
  /** Fails as a `ProviderError`; unauthorized if the refresh token is no longer accepted. */
  refresh(secrets: ProviderSecrets, refresh_token: string, settings: AccountSettings): Promise<IssuedTokens>;
};
