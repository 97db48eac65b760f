/**
 * OAuth of Xero (developer.xero.com, "The standard authorization code flow"): the authorization page, the endpoint that issues tokens, and the
 * list of connected organisations. An access token lives 30 minutes. A refresh replaces the refresh token; the old one is accepted for 30
 * minutes more.
 */
import { z } from 'zod';
import { parseJson } from '../../core/foundation/json/parse.ts';
import type { ProviderSecrets } from '../../core/platform/connection/record.ts';
import type { AccountSettings } from '../account.ts';
import type { IssuedTokens, OAuthCapability } from '../oauth.ts';
import { ProviderError } from '../provider-error.ts';
import { sendRequest } from '../send-request.ts';
import { buildStatusError } from '../status-error.ts';
import { requestTokens } from '../token-endpoint.ts';
import { xeroSecrets } from './secrets.ts';

const AUTHORIZATION_PAGE = 'https://login.xero.com/identity/connect/authorize';
const TOKEN_ENDPOINT = 'https://identity.xero.com/connect/token';
const CONNECTIONS_ENDPOINT = 'https://api.xero.com/connections';
/** Granular scopes, the only ones of apps made since March 2026. */
const SCOPES = [
  ...['offline_access', 'accounting.invoices', 'accounting.payments'],
  ...['accounting.contacts', 'accounting.settings.read'],
];

/** The flow starts without the organisation, which the owner selects on the page. */
const flowCredentials = xeroSecrets
  .omit({ access_token: true, refresh_token: true })
  .partial({ tenant_id: true })
  .required({ redirect_uri: true });

export const xeroOAuth: OAuthCapability = {
  credentials: flowCredentials,

  buildAuthorizationUrl(credentials, state, { address }) {
    const { client_id, redirect_uri } = flowCredentials.parse(credentials);
    const url = address === null ? new URL(AUTHORIZATION_PAGE) : new URL('/identity/connect/authorize', address);
    const parameters = { response_type: 'code', client_id, redirect_uri, scope: SCOPES.join(' '), state };
    url.search = new URLSearchParams(parameters).toString();
    return url;
  },

  async exchangeCode(credentials, { code }, settings) {
    const { tenant_id: wanted, redirect_uri, ...others } = flowCredentials.parse(credentials);
    const form = { grant_type: 'authorization_code', code, redirect_uri };
    const tokens = await requestOrganisationTokens(credentials, form, settings);
    const tenant_id = await chooseOrganisation(tokens.access_token, wanted, settings);
    return { secrets: { ...others, redirect_uri, tenant_id }, tokens };
  },

  refresh: (secrets, refresh_token, settings) =>
    requestOrganisationTokens(secrets, { grant_type: 'refresh_token', refresh_token }, settings),
};

function requestOrganisationTokens(
  credentials: ProviderSecrets,
  form: Readonly<Record<string, string>>,
  { address }: AccountSettings,
): Promise<IssuedTokens> {
  const app = flowCredentials.pick({ client_id: true, client_secret: true }).parse(credentials);
  const url = address === null ? new URL(TOKEN_ENDPOINT) : new URL('/connect/token', address);
  return requestTokens(url, { provider_name: 'Xero', ...app, form });
}

const connectionList = z.array(
  z.object({ tenantId: z.string(), tenantType: z.string(), tenantName: z.string().nullish() }),
);

/**
 * Chooses the organisation that the owner has just connected. The same user may have connected others to the app before; without the
 * event of this consent in the token, all of them are candidates.
 */
async function chooseOrganisation(
  access_token: string,
  wanted: string | undefined,
  { address }: AccountSettings,
): Promise<string> {
  const url = address === null ? new URL(CONNECTIONS_ENDPOINT) : new URL('/connections', address);
  const event = wanted === undefined ? readConsentEvent(access_token) : null;
  if (event !== null) url.searchParams.set('authEventId', event);
  const headers = { authorization: `Bearer ${access_token}` };
  const answer = await sendRequest('Xero', url, { method: 'GET', headers });
  const listed = connectionList.safeParse(answer.body);
  if (answer.status !== 200 || !listed.success) throw buildStatusError('Xero', answer);
  const organisations = listed.data.filter(({ tenantType }) => tenantType === 'ORGANISATION');
  const found = organisations.filter(({ tenantId }) => wanted === undefined || tenantId === wanted);
  if (found.length === 1) return found[0]!.tenantId;
  const names = organisations.map(({ tenantId, tenantName }) => `${tenantName ?? 'without a name'} (${tenantId})`);
  throw new ProviderError(
    'person',
    `the consent must be for one organisation, or tenant_id must name one of the connected: ${names.join(', ') || 'none'}`,
  );
}

const tokenClaims = z.object({ authentication_event_id: z.uuid() });

/** Reads the id of the consent from the access token, a JSON web token; null if the token does not have it. */
function readConsentEvent(access_token: string): string | null {
  try {
    const claims = parseJson(Buffer.from(access_token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    return tokenClaims.safeParse(claims).data?.authentication_event_id ?? null;
  } catch {
    return null;
  }
}
