/** Sends requests to Intuit. Every failure is a `ProviderError`. The caller decides whether to repeat a request. */
import { parseExactJson } from '../exact-json.ts';
import { ProviderError } from '../provider-error.ts';
import { readBoundedText } from '../read-bounded-text.ts';

const TIMEOUT_MS = 30_000;
const ANSWER_BYTES_MAX = 20_000_000;

type IntuitRequest = {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
};
/** `body` is undefined if the answer is not JSON. */
type IntuitAnswer = { readonly status: number; readonly body: unknown };

export async function sendToIntuit(url: URL, { method, headers, body }: IntuitRequest): Promise<IntuitAnswer> {
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
    return { status: response.status, body: parseAnswer(text) };
  } catch (error) {
    const isSlow = error instanceof Error && error.name === 'TimeoutError';
    throw new ProviderError(
      'wait',
      isSlow ? `QuickBooks: no answer within ${TIMEOUT_MS} ms` : 'QuickBooks: no connection',
    );
  }
}

function parseAnswer(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
}
