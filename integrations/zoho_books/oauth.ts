/**
 * OAuth of Zoho (zoho.com/books/api/v3/oauth): the authorization page, and the endpoint that issues tokens. The account is
 * at one data center, which the return names. A refresh token does not change; it ends after 20 newer ones of its user.
 */
import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { ProviderSecrets } from '../../core/platform/connection/record.ts';
import type { AccountSettings } from '../account.ts';
import type { IssuedTokens, OAuthCapability } from '../oauth.ts';
import { ProviderError } from '../provider-error.ts';
import { type ProviderAnswer, sendRequest } from '../send-request.ts';
import { ZohoBooksClient } from './client.ts';
import { type DataCenter, findDataCenter } from './data-centers.ts';
import { buildAnswerError } from './errors.ts';
import { dataCenterKeys, zohoBooksSecrets } from './secrets.ts';

const SCOPE = [
  'ZohoBooks.settings.READ',
  ...['contacts.CREATE', 'contacts.READ'].map((right) => `ZohoBooks.${right}`),
  ...['invoices', 'customerpayments', 'creditnotes'].flatMap((records) =>
    ['CREATE', 'READ', 'DELETE'].map((right) => `ZohoBooks.${records}.${right}`),
  ),
].join(',');

/** Pause after too many requests for tokens: Zoho issues ten in ten minutes. */
const TOKEN_PAUSE_SECONDS = 600;
const THROTTLED = /^access[ _]denied$/i;

/** The flow starts without the organization, which may be chosen afterwards. */
const flowCredentials = zohoBooksSecrets
  .omit({ access_token: true, refresh_token: true })
  .partial({ organization_id: true })
  .required({ redirect_uri: true });

export const zohoBooksOAuth: OAuthCapability = {
  credentials: flowCredentials,

  buildAuthorizationUrl(credentials, state, { address }) {
    const { client_id, redirect_uri } = flowCredentials.parse(credentials);
    const { accounts_server } = findDataCenter(dataCenterKeys.parse(credentials));
    const url = new URL('/oauth/v2/auth', address ?? accounts_server);
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id,
      scope: SCOPE,
      redirect_uri,
      state,
      // Without these two, Zoho issues a refresh token only for the first grant.
      access_type: 'offline',
      prompt: 'consent',
    }).toString();
    return url;
  },

  async exchangeCode(credentials, { code, organization_id, location, accounts_server }, settings) {
    const { organization_id: given, ...app } = flowCredentials.parse(credentials);
    if (organization_id !== undefined && !/^\d{1,20}$/.test(organization_id))
      throw invalid('organization_id', 'must be digits');
    const isNamed = location !== undefined || accounts_server !== undefined;
    const center = findDataCenter(isNamed ? { location, accounts_server } : dataCenterKeys.parse(credentials));
    const form = { grant_type: 'authorization_code', code, redirect_uri: app.redirect_uri };
    const { refresh_token, ...issued } = await requestTokens(credentials, { form, center, settings });
    if (refresh_token === undefined) throw new ProviderError('wait', 'Zoho Books: an answer without a refresh token');
    const tokens = { ...issued, refresh_token };
    const access = { ...center, access_token: tokens.access_token };
    const organization = organization_id ?? given ?? (await findOnlyOrganization(access, settings));
    return { secrets: { ...app, ...center, organization_id: organization }, tokens };
  },

  async refresh(secrets, refresh_token, settings) {
    const center = findDataCenter(dataCenterKeys.parse(secrets));
    const form = { grant_type: 'refresh_token', refresh_token };
    return { refresh_token, ...(await requestTokens(secrets, { form, center, settings })) };
  },
};

const issuedShape = z.object({
  access_token: z.string().min(1),
  refresh_token: z.string().min(1).optional(),
  api_domain: z.string().optional(),
  // Numbers are parsed as texts (exact-json.ts).
  expires_in: z.string().regex(/^\d{1,9}$/),
});

type ZohoTokenRequest = {
  readonly form: Readonly<Record<string, string>>;
  readonly center: DataCenter;
  readonly settings: AccountSettings;
};

async function requestTokens(
  credentials: ProviderSecrets,
  { form, center, settings: { address } }: ZohoTokenRequest,
): Promise<Omit<IssuedTokens, 'refresh_token'> & { refresh_token?: string }> {
  const app = flowCredentials.pick({ client_id: true, client_secret: true }).parse(credentials);
  const url = new URL('/oauth/v2/token', address ?? center.accounts_server);
  const answer = await sendRequest('Zoho Books', url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ ...form, ...app }).toString(),
  });
  const issued = issuedShape.safeParse(answer.body);
  if (answer.status !== 200 || !issued.success) throw toTokenError(answer);
  const { access_token, refresh_token, expires_in, api_domain = center.api_domain } = issued.data;
  if (api_domain !== center.api_domain)
    throw new ProviderError('person', 'Zoho Books: the account is at another data center than its grant', {
      is_unauthorized: true,
    });
  return {
    access_token,
    ...(refresh_token === undefined ? {} : { refresh_token }),
    expires_in_seconds: Number(expires_in),
  };
}

const tokenError = z.object({ error: z.string().regex(/^[\w ]{1,64}$/) });

/** Builds the error of a refused token request, which Zoho answers with status 200 or 400. It omits the description, which may quote a token. */
function toTokenError(answer: ProviderAnswer): ProviderError {
  const code = tokenError.safeParse(answer.body).data?.error;
  if (code === undefined || answer.status >= 500)
    return buildAnswerError(answer) ?? new ProviderError('wait', 'Zoho Books: an answer without tokens');
  if (THROTTLED.test(code) || answer.status === 429)
    return new ProviderError('wait', 'Zoho Books: too many requests for tokens', {
      provider_code: code,
      retry_after_seconds: answer.retry_after_seconds ?? TOKEN_PAUSE_SECONDS,
    });
  return new ProviderError(
    'person',
    `Zoho Books refuses the authorization (${code}): grant access again (POST /oauth/init)`,
    { provider_code: code, is_unauthorized: true },
  );
}

type Organization = { readonly organization_id: string; readonly name?: string };

type NewAccess = { readonly api_domain: string; readonly access_token: string };

/** Finds the organization of a user who belongs to one alone. */
async function findOnlyOrganization(access: NewAccess, settings: AccountSettings): Promise<string> {
  const found = await listOrganizations(access, settings);
  if (found.length === 1) return found[0]!.organization_id;
  const listed = found.map(({ organization_id, name = '' }) => `${organization_id} (${name})`).join(', ');
  throw new ProviderError(
    'person',
    `Zoho Books: the user belongs to ${found.length} organizations: begin again with organization_id, one of ${listed || 'none'}`,
  );
}

async function listOrganizations(access: NewAccess, settings: AccountSettings): Promise<readonly Organization[]> {
  const client = new ZohoBooksClient({ ...access, organization_id: null }, settings);
  const found: Organization[] = [];
  try {
    for await (const one of client.listPages<Organization>('organizations', 'organizations')) found.push(one);
    return found;
  } catch (error) {
    const { error_class, provider_code } = error as ProviderError;
    // The refusal may quote the new access token, which is not redacted yet.
    throw new ProviderError(error_class, 'Zoho Books: the organizations of the user cannot be read', { provider_code });
  }
}
