/**
 * Sends requests to the API of a provider. Every failure is a `ProviderError`. The caller decides whether to repeat a
 * request.
 */
import { parseExactJson } from './exact-json.ts';
import { ProviderError, parseRetryAfter } from './provider-error.ts';
import { readBoundedText } from './read-bounded-text.ts';

const TIMEOUT_MS = 30_000;
const ANSWER_BYTES_MAX = 20_000_000;

export type QueryParameters = Readonly<Record<string, string>>;

type ProviderRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
};
export type ProviderAnswer = {
  readonly status: number;
  /** JSON whose numbers are texts (exact-json.ts); undefined if the answer is no JSON. */
  readonly body: unknown;
  /** Wait that the answer asks for; null if it asks for none. */
  readonly retry_after_seconds: number | null;
};

export async function sendRequest(
  provider_name: string,
  url: URL,
  { method, headers, body }: ProviderRequest,
): Promise<ProviderAnswer> {
  checkHeaders(provider_name, headers);
  try {
    const response = await fetch(url, {
      method,
      headers: { accept: 'application/json', ...headers },
      ...(body === undefined ? {} : { body }),
      // Follows no redirect, because the token is for this host only.
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await readBoundedText(response, ANSWER_BYTES_MAX);
    const retry_after_seconds = parseRetryAfter(response.headers.get('retry-after'));
    return { status: response.status, body: parseAnswer(text), retry_after_seconds };
  } catch (error) {
    const isSlow = error instanceof Error && error.name === 'TimeoutError';
    throw new ProviderError(
      'wait',
      isSlow ? `${provider_name}: no answer within ${TIMEOUT_MS} ms` : `${provider_name}: no connection`,
    );
  }
}

/** Only credentials can have other characters, such as a line break in their middle. The cause is dropped, because it quotes them. */
function checkHeaders(provider_name: string, headers: ProviderRequest['headers']): void {
  try {
    new Headers(headers);
  } catch {
    throw new ProviderError('person', `${provider_name}: the credentials have a character that no header may have`, {
      is_unauthorized: true,
    });
  }
}

function parseAnswer(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
}
