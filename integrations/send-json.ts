/** Sends JSON to a provider, and turns its refusals into a `ProviderError`, for providers whose answers have a status that says all. */
import { type ExactJson, writeExactJson } from './exact-json.ts';
import { ProviderError } from './provider-error.ts';
import { type ProviderAnswer, sendRequest } from './send-request.ts';

type JsonRequest = Pick<Parameters<typeof sendRequest>[2], 'method' | 'headers'> & {
  /** Name for error messages. */
  readonly provider_name: string;
  readonly body?: ExactJson | undefined;
};

export async function sendJson(
  url: URL,
  { provider_name, method, headers, body }: JsonRequest,
): Promise<ProviderAnswer> {
  if (body === undefined) return await sendRequest(provider_name, url, { method, headers });
  const json = { 'content-type': 'application/json', ...headers };
  return await sendRequest(provider_name, url, { method, headers: json, body: writeExactJson(body) });
}

type AnswerDescription = {
  readonly provider_name: string;
  /** The provider's text; empty if it gives none. */
  readonly text: string;
  readonly provider_code: string | null;
};

const UNAUTHORIZED = new Set([401, 403]);
/** Statuses after which the request is repeated: 408 timeout, 409 same request in flight, 425 too early, 429 too many requests. */
const WAIT = new Set([408, 409, 425, 429]);

/** Builds the error of an answer that is no success, or that cannot be read. */
export function buildAnswerError(
  { status, retry_after_seconds }: ProviderAnswer,
  { provider_name, text, provider_code }: AnswerDescription,
): ProviderError {
  const message = `${provider_name}: ${text === '' ? `status ${status}, and no answer that can be read` : text}`;
  if (status < 400 || status >= 500 || WAIT.has(status))
    return new ProviderError('wait', message, { provider_code, retry_after_seconds });
  const is_unauthorized = UNAUTHORIZED.has(status);
  return new ProviderError('person', message, { provider_code, is_unauthorized, is_missing: status === 404 });
}
