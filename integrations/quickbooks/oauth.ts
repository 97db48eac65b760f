/**
 * OAuth of Intuit (developer.intuit.com, "Set up OAuth 2.0"): the authorization page, and the endpoint that issues
 * tokens. Intuit documents no PKCE for confidential clients; the client secret protects the code.
 */
import { invalid } from '../../core/foundation/error.ts';
import type { ProviderSecrets } from '../../core/platform/connection/record.ts';
import type { AccountSettings } from '../account.ts';
import type { IssuedTokens, OAuthCapability } from '../oauth.ts';
import { requestTokens } from '../token-endpoint.ts';
import { quickbooksSecrets } from './secrets.ts';

const AUTHORIZATION_PAGE = 'https://appcenter.intuit.com/connect/oauth2';
const TOKEN_ENDPOINT = 'https://oauth.platform.intuit.com/oauth2/v1/tokens/bearer';
const SCOPE = 'com.intuit.quickbooks.accounting';

/** The flow starts without the company, which only the grant names. */
const flowCredentials = quickbooksSecrets
  .omit({ realm_id: true, access_token: true, refresh_token: true })
  .required({ redirect_uri: true });

export const quickbooksOAuth: OAuthCapability = {
  credentials: flowCredentials,

  buildAuthorizationUrl(credentials, state, { address }) {
    const { client_id, redirect_uri } = flowCredentials.parse(credentials);
    const url = address === null ? new URL(AUTHORIZATION_PAGE) : new URL('/connect/oauth2', address);
    const parameters = { client_id, response_type: 'code', scope: SCOPE, redirect_uri, state };
    url.search = new URLSearchParams(parameters).toString();
    return url;
  },

  async exchangeCode(credentials, { code, realm_id }, settings) {
    const { redirect_uri, ...others } = flowCredentials.parse(credentials);
    if (realm_id === undefined || !/^\d{1,20}$/.test(realm_id))
      throw invalid('realm_id', 'is required: the digits of `realmId` in the address of the return');
    const form = { grant_type: 'authorization_code', code, redirect_uri };
    const tokens = await requestCompanyTokens(credentials, form, settings);
    return { secrets: { ...others, redirect_uri, realm_id }, tokens };
  },

  refresh: (secrets, refresh_token, settings) =>
    requestCompanyTokens(secrets, { grant_type: 'refresh_token', refresh_token }, settings),
};

function requestCompanyTokens(
  credentials: ProviderSecrets,
  form: Readonly<Record<string, string>>,
  { address }: AccountSettings,
): Promise<IssuedTokens> {
  const app = flowCredentials.pick({ client_id: true, client_secret: true }).parse(credentials);
  const url = address === null ? new URL(TOKEN_ENDPOINT) : new URL('/oauth2/v1/tokens/bearer', address);
  return requestTokens(url, { provider_name: 'QuickBooks', ...app, form });
}
