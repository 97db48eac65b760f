/**
 * OAuth of Intuit (developer.intuit.com, "Set up OAuth 2.0"): the authorization page, and the endpoint that issues
 * tokens. Intuit documents no PKCE for confidential clients; the client secret protects the code.
 */
import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { ProviderSecrets } from '../../core/platform/connection/record.ts';
import type { AccountSettings } from '../account.ts';
import type { IssuedTokens, OAuthCapability } from '../oauth.ts';
import { ProviderError } from '../provider-error.ts';
import { type ProviderAnswer, sendRequest } from '../send-request.ts';
import { buildStatusError } from './errors.ts';
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
    const tokens = await requestTokens(credentials, form, settings);
    return { secrets: { ...others, redirect_uri, realm_id }, tokens };
  },

  refresh: (secrets, refresh_token, settings) =>
    requestTokens(secrets, { grant_type: 'refresh_token', refresh_token }, settings),
};

const issuedShape = z.object({
  access_token: z.string().min(1),
  refresh_token: z.string().min(1),
  // Numbers are parsed as texts (exact-json.ts).
  expires_in: z.string().regex(/^\d{1,9}$/),
});

async function requestTokens(
  credentials: ProviderSecrets,
  form: Record<string, string>,
  { address }: AccountSettings,
): Promise<IssuedTokens> {
  const { client_id, client_secret } = flowCredentials
    .pick({ client_id: true, client_secret: true })
    .parse(credentials);
  const url = address === null ? new URL(TOKEN_ENDPOINT) : new URL('/oauth2/v1/tokens/bearer', address);
  const answer = await sendRequest('QuickBooks', url, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams(form).toString(),
  });
  if (answer.status !== 200) throw toTokenError(answer);
  const issued = issuedShape.safeParse(answer.body);
  if (!issued.success) throw new ProviderError('wait', 'QuickBooks: an answer without tokens');
  const { access_token, refresh_token, expires_in } = issued.data;
  return { access_token, refresh_token, expires_in_seconds: Number(expires_in) };
}

const tokenError = z.object({ error: z.string().regex(/^\w{1,64}$/) });

/** Builds the error of a refused token request (RFC 6749, section 5.2). It omits the description of the answer, which may quote a token. */
function toTokenError(answer: ProviderAnswer): ProviderError {
  const { status, body } = answer;
  const code = tokenError.safeParse(body).data?.error ?? null;
  if (code === null || status === 429 || status >= 500) return buildStatusError(answer);
  const hint = code === 'invalid_grant' ? ': grant access again (POST /oauth/init)' : '';
  return new ProviderError('person', `QuickBooks refuses the authorization (${code})${hint}`, {
    provider_code: code,
    is_unauthorized: true,
  });
}
