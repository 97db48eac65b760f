/**
 * OAuth access to an account, which its owner grants in a browser (RFC 6749, section 4.1). The access token lives for
 * about an hour. A refresh may replace the refresh token; the provider then accepts only the new one
 * (docs/decisions/0028-oauth-tokens.md).
 */
import type { z } from 'zod';
import type { ProviderSecrets } from '../core/platform/connection/record.ts';
import type { AccountSettings } from './account.ts';

/** Tokens as the provider returns them. */
export type IssuedTokens = {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_in_seconds: number;
};

/** Parameters with which the provider sends the browser back. */
export type OAuthGrant = {
  readonly code: string;
  readonly realm_id?: string | undefined;
  readonly organization_id?: string | undefined;
  readonly organization_name?: string | undefined;
  readonly location?: string | undefined;
  readonly accounts_server?: string | undefined;
};

export type OAuthCapability = {
  /** Shape of the credentials that start a flow: those of the account without the fields that the grant provides. */
  readonly credentials: z.ZodObject;
  buildAuthorizationUrl(credentials: ProviderSecrets, state: string, settings: AccountSettings): URL;
  /**
   * Exchanges the code of a grant for tokens. Throws a `ProviderError`. The returned `secrets` contain no tokens.
   */
  exchangeCode(
    credentials: ProviderSecrets,
    grant: OAuthGrant,
    settings: AccountSettings,
  ): Promise<{ readonly secrets: ProviderSecrets; readonly tokens: IssuedTokens }>;
  /** Exchanges the refresh token. Throws a `ProviderError`; `is_unauthorized` if the token is no longer accepted. */
  refresh(secrets: ProviderSecrets, refresh_token: string, settings: AccountSettings): Promise<IssuedTokens>;
};
