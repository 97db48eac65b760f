/**
 * The client of the public API, with the types of its OpenAPI document. The session cookie authenticates; each request names its
 * environment, and unsafe ones carry the header that a form on a foreign page cannot send.
 */
import createClient, { type Middleware } from 'openapi-fetch';
import { SECOND_MS } from '../../core/foundation/time/durations.ts';
import { getEnvironment } from './environment.ts';
import { parseEvents } from './exact-json.ts';
import type { paths } from './openapi.d.ts';
import { quoteShell } from './shell-quote.ts';

export const API_BASE = '/v1';
export const CONSOLE_HEADER = 'X-Farthing-Console';
export const ENVIRONMENT_HEADER = 'X-Environment-ID';

/** An error of the API: its status, its code, its message, and the field of the request that it names. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | null;
  readonly request_id: string | null;
  /** Wait that the header `Retry-After` requests; null without a number of seconds. */
  readonly retry_after_ms: number | null;

  constructor(status: number, record: ApiErrorRecord | null, headers: Headers = new Headers()) {
    super(record?.message ?? `the service answered ${status}`);
    this.name = 'ApiError';
    this.status = status;
    this.code = record?.code ?? 'unknown';
    this.field = typeof record?.details?.field === 'string' ? record.details.field : null;
    this.request_id = headers.get('x-request-id');
    const seconds = headers.get('retry-after') ?? '';
    this.retry_after_ms = /^\d+$/.test(seconds) ? Number(seconds) * SECOND_MS : null;
  }
}

type ApiErrorRecord = { code?: string; message?: string; details?: { field?: unknown } | null };

const addHeaders: Middleware = {
  onRequest({ request }) {
    const environment_id = getEnvironment();
    if (environment_id !== null && !request.headers.has(ENVIRONMENT_HEADER))
      request.headers.set(ENVIRONMENT_HEADER, environment_id);
    request.headers.set(CONSOLE_HEADER, '1');
    return request;
  },
};

const throwErrors: Middleware = {
  async onResponse({ response }) {
    if (!response.ok) throw await readError(response);
    return response;
  },
};

export async function readError(response: Response): Promise<ApiError> {
  const record = (await response.json().catch(() => null)) as ApiErrorRecord | null;
  return new ApiError(response.status, record, response.headers);
}

export const api = createClient<paths>({ baseUrl: API_BASE });
api.use(addHeaders, throwErrors);

/** Unwraps an answer: errors are thrown by the middleware, so that an answer without data has none by contract (204). */
export async function readData<Data>(answer: Promise<{ data?: Data }>): Promise<NonNullable<Data>> {
  const { data } = await answer;
  return data as NonNullable<Data>;
}

/** Option of a request whose answer `readEvents` unwraps: the answer is read as text, and typed as the JSON in it. */
export const asEvents = { parseAs: 'text' as 'json' };

/** Unwraps an answer with events. Numbers in their properties keep all digits (exact-json.ts). */
export async function readEvents<Data>(answer: Promise<{ data?: Data }>): Promise<NonNullable<Data>> {
  const text = await readData(answer as Promise<{ data?: string }>);
  return parseEvents(text) as NonNullable<Data>;
}

/** Address of a download or a stream, which cannot send headers: the environment stands in the query. */
export function linkTo(path: string, query: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries({ environment_id: getEnvironment() ?? undefined, ...query }))
    if (value !== undefined) search.set(key, value);
  return `${API_BASE}${path}?${search}`;
}

/** The command that asks the same, for a terminal. The key is the reader's own. */
export function formatCurl(method: string, path: string, body?: unknown): string {
  const environment_id = getEnvironment();
  const address = quoteShell(`${location.origin}${API_BASE}${path}`);
  const lines = [`curl -X ${method} ${address}`, `-H "x-api-key: $FARTHING_API_KEY"`];
  if (environment_id !== null) lines.push(`-H ${quoteShell(`${ENVIRONMENT_HEADER}: ${environment_id}`)}`);
  if (body !== undefined) lines.push(`-H 'content-type: application/json'`, `-d ${quoteShell(JSON.stringify(body))}`);
  return lines.join(' \\\n  ');
}
