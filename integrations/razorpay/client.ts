/**
 * Client of Razorpay: the official library with a changed HTTP client. It adds a timeout, refuses redirects, and
 * retains errors, of which the library drops the status and `Retry-After`. It also sends the header of idempotent
 * refunds.
 */
import type Razorpay from 'razorpay';
import type { Refunds } from 'razorpay/dist/types/refunds.js';
import type { AccountSettings } from '../account.ts';
import { ProviderError } from '../provider-error.ts';
import { buildUnreadableError, type FailedRequest, isMissing, toRazorpayError } from './errors.ts';

const TIMEOUT_MS = 30_000;
const ANSWER_BYTES_MAX = 10 * 1024 * 1024;

export type RazorpayCredentials = { readonly key_id: string; readonly secret_key: string };

export type RazorpayClient = Razorpay & { readonly api: { readonly rq: HttpClient } };

type HttpAnswer<Data> = { readonly status: number; readonly data: Data };
type HttpClient = {
  readonly defaults: Record<string, unknown>;
  readonly interceptors: {
    readonly request: { use(prepare: (request: object) => Promise<object>): void };
    readonly response: {
      use(
        pass: (answer: HttpAnswer<unknown>) => HttpAnswer<unknown>,
        fail: (failed: FailedRequest) => Promise<never>,
      ): void;
    };
  };
  post<Data>(path: string, body: object, options: { headers: Record<string, string> }): Promise<HttpAnswer<Data>>;
};

/** Creates the client. The library is loaded only if an account is opened. */
export async function createRazorpayClient(
  { key_id, secret_key }: RazorpayCredentials,
  { address, beforeRequest = async () => {} }: AccountSettings,
): Promise<RazorpayClient> {
  const { default: Client } = await import('razorpay');
  const client = new Client({ key_id, key_secret: secret_key }) as RazorpayClient;
  const { defaults, interceptors } = client.api.rq;
  Object.assign(defaults, {
    timeout: TIMEOUT_MS,
    maxContentLength: ANSWER_BYTES_MAX,
    maxRedirects: 0,
    proxy: false,
    ...(address === null ? {} : { baseURL: address.href.replace(/\/+$/, '') }),
  });
  interceptors.request.use(async (request) => {
    await beforeRequest();
    return request;
  });
  interceptors.response.use(checkAnswer, (failed) => Promise.reject(wrapError(toRazorpayError(failed))));
  return client;
}

/** Throws if an answer has a field `error`, even with status 200, because no record of Razorpay has such a field. */
function checkAnswer(answer: HttpAnswer<unknown>): HttpAnswer<unknown> {
  const { status, data } = answer;
  if (typeof data !== 'object' || data === null) throw wrapError(buildUnreadableError(status));
  if ('error' in data) throw wrapError(toRazorpayError({ response: { status, data, headers: {} } }));
  return answer;
}

type WrappedError = { readonly error: ProviderError };

/** Wraps an error for the library, which reads `response` of each failure and throws only its `error`. */
function wrapError(error: ProviderError): WrappedError & { response: { status: number; data: WrappedError } } {
  return { error, response: { status: 0, data: { error } } };
}

/** Every failure of Razorpay leaves this folder as a `ProviderError`. */
export async function translateErrors<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (thrown) {
    throw unwrapError(thrown);
  }
}

export async function fetchIfExists<Found>(load: () => Promise<Found>): Promise<Found | null> {
  try {
    return await translateErrors(load);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/**
 * Returns the `ProviderError` of a failure at Razorpay. Any other error is a fault of this service and returned
 * unchanged.
 */
export function unwrapError(thrown: unknown): unknown {
  const error = (thrown as Partial<WrappedError> | null)?.error;
  return error instanceof ProviderError ? error : thrown;
}

type KeyedRefund = { readonly payment_id: string; readonly idempotency_key: string };

/** A repeated request with one key refunds once (razorpay.com/docs/api/refunds/normal-refunds-idempotent). */
export async function createKeyedRefund(
  { api }: RazorpayClient,
  { payment_id, idempotency_key }: KeyedRefund,
  body: Refunds.RazorpayRefundCreateRequestBody,
): Promise<Refunds.RazorpayRefund> {
  const headers = { 'X-Refund-Idempotency': idempotency_key };
  const { data } = await api.rq.post<Refunds.RazorpayRefund>(`/v1/payments/${payment_id}/refund`, body, { headers });
  return data;
}
