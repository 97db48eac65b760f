/**
 * Turns failures of Razorpay into `ProviderError`s (razorpay.com/docs/errors). The cause is omitted, because the
 * library's error contains the credentials of the request.
 */
import { ProviderError, parseRetryAfter } from '../provider-error.ts';

type ErrorBody = {
  readonly code?: string;
  readonly description?: string;
  readonly field?: string;
  readonly reason?: string;
  readonly metadata?: { readonly payment_id?: string };
};

/** The failed request as the HTTP library describes it. Without `response` the connection failed. */
export type FailedRequest = {
  readonly code?: string;
  readonly response?: {
    readonly status: number;
    readonly data: unknown;
    readonly headers: Readonly<Record<string, unknown>>;
  };
};

class RazorpayError extends ProviderError {
  readonly status: number | null;

  constructor(status: number | null, ...rest: ConstructorParameters<typeof ProviderError>) {
    super(...rest);
    this.status = status;
  }
}

const UNAUTHORIZED = new Set([401, 403]);
/**
 * 4xx statuses after which the request is repeated: 408 timeout, 409 same key in flight, 425 too early, 429 too many
 * requests.
 */
const WAIT = new Set([408, 409, 425, 429]);

export function toRazorpayError({ code, response }: FailedRequest): ProviderError {
  if (response === undefined)
    return new RazorpayError(null, 'wait', `Razorpay: no answer (${code ?? 'connection failed'})`);
  const { status, headers } = response;
  const body = parseBody(response.data);
  const facts = [body.code, body.field, body.reason].filter((fact) => fact && fact !== 'NA').join(', ');
  const message = `Razorpay: ${body.description || `status ${status}`}${facts === '' ? '' : ` (${facts})`}`;
  const provider_code = body.code ?? null;
  if (status < 400 || status >= 500 || WAIT.has(status))
    return new RazorpayError(status, 'wait', message, {
      provider_code,
      retry_after_seconds: parseRetryAfter(headers['retry-after']),
    });
  return new RazorpayError(status, 'person', message, { provider_code, is_unauthorized: UNAUTHORIZED.has(status) });
}

/** Builds the error of an answer with a success status and no JSON object, such as an HTML page of a proxy. */
export function buildUnreadableError(status: number): ProviderError {
  return new RazorpayError(status, 'wait', 'Razorpay: the answer is no JSON');
}

function parseBody(data: unknown): ErrorBody {
  const error = (data as { error?: unknown } | null)?.error;
  return typeof error === 'object' && error !== null ? error : {};
}

/** Whether the record does not exist. Razorpay answers 400 for an unknown id. */
export function isMissing(error: unknown): boolean {
  if (!(error instanceof RazorpayError)) return false;
  return error.status === 404 || (error.status === 400 && /does not exist|not found/i.test(error.message));
}
