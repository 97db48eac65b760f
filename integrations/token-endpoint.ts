/**
 * Requests tokens from the token endpoint of a provider (RFC 6749, sections 4.1.3 and 6), with the client secret in the
 * header `Authorization`.
 */
import { z } from 'zod';
import type { IssuedTokens } from './oauth.ts';
import { ProviderError } from './provider-error.ts';
import { type ProviderAnswer, sendRequest } from './send-request.ts';
import { buildStatusError } from './status-error.ts';

type TokenRequest = {
  readonly provider_name: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly form: Readonly<Record<string, string>>;
};

const issuedShape = z.object({
  access_token: z.string().min(1),
  refresh_token: z.string().min(1),
  // Numbers are parsed as texts (exact-json.ts).
  expires_in: z.string().regex(/^\d{1,9}$/),
});

export async function requestTokens(
  url: URL,
  { provider_name, client_id, client_secret, form }: TokenRequest,
): Promise<IssuedTokens> {
  const answer = await sendRequest(provider_name, url, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams(form).toString(),
  });
  if (answer.status !== 200) throw toTokenError(answer, provider_name);
  const issued = issuedShape.safeParse(answer.body);
  if (!issued.success) throw new ProviderError('wait', `${provider_name}: an answer without tokens`);
  const { access_token, refresh_token, expires_in } = issued.data;
  return { access_token, refresh_token, expires_in_seconds: Number(expires_in) };
}

const tokenError = z.object({ error: z.string().regex(/^\w{1,64}$/) });

/** Builds the error of a refused token request (RFC 6749, section 5.2). It omits the description of the answer, which may quote a token. */
function toTokenError(answer: ProviderAnswer, provider_name: string): ProviderError {
  const { status, body } = answer;
  const code = tokenError.safeParse(body).data?.error ?? null;
  if (code === null || status === 429 || status >= 500) return buildStatusError(provider_name, answer);
  const hint = code === 'invalid_grant' ? ': grant access again (POST /oauth/init)' : '';
  return new ProviderError('person', `${provider_name} refuses the authorization (${code})${hint}`, {
    provider_code: code,
    is_unauthorized: true,
  });
}
