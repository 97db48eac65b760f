/**
 * Sends JSON requests to a provider that has no library here. Numbers of an answer become texts of their digits (exact-json.ts). A lost
 * connection is a `ProviderError`; the caller decides whether to repeat a request.
 */
import { type ExactJson, parseExactJson, writeExactJson } from './exact-json.ts';
import { ProviderError, parseRetryAfter } from './provider-error.ts';
import { readBoundedText } from './read-bounded-text.ts';

const TIMEOUT_MS = 30_000;
const ANSWER_BYTES_MAX = 20_000_000;
const JSON_CONTENT = { 'content-type': 'application/json' };

type JsonRequest = {
  /** Name for error messages. */
  readonly provider_name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: ExactJson | undefined;
};
export type JsonAnswer = {
  readonly status: number;
  /** Undefined if the answer is no JSON. */
  readonly body: unknown;
  /** Wait that the answer asks for; null if it asks for none. */
  readonly retry_after_seconds: number | null;
};

export async function sendJson(url: URL, { provider_name, method, headers, body }: JsonRequest): Promise<JsonAnswer> {
  const content = body === undefined ? null : writeExactJson(body);
  try {
    const response = await fetch(url, {
      method,
      headers: { accept: 'application/json', ...(content === null ? {} : JSON_CONTENT), ...headers },
      body: content,
      // Follows no redirect, because the credentials are for this host only.
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await readBoundedText(response, ANSWER_BYTES_MAX);
    const retry_after_seconds = parseRetryAfter(response.headers.get('retry-after'));
    return { status: response.status, body: parseAnswer(text), retry_after_seconds };
  } catch (error) {
    const isSlow = error instanceof Error && error.name === 'TimeoutError';
    const why = isSlow ? `no answer within ${TIMEOUT_MS} ms` : 'no connection';
    throw new ProviderError('wait', `${provider_name}: ${why}`);
  }
}

function parseAnswer(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
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
  { status, retry_after_seconds }: JsonAnswer,
  { provider_name, text, provider_code }: AnswerDescription,
): ProviderError {
  const message = `${provider_name}: ${text === '' ? `status ${status}, and no answer that can be read` : text}`;
  if (status < 400 || status >= 500 || WAIT.has(status))
    return new ProviderError('wait', message, { provider_code, retry_after_seconds });
  const is_unauthorized = UNAUTHORIZED.has(status);
  return new ProviderError('person', message, { provider_code, is_unauthorized, is_missing: status === 404 });
}

/** Whether the provider refused the request, so that it had no effect. Refused credentials do not count. */
export function isRefusal(error: unknown): error is ProviderError {
  return error instanceof ProviderError && error.error_class === 'person' && !error.is_unauthorized;
}

export function isMissing(error: unknown): boolean {
  return error instanceof ProviderError && error.is_missing;
}
