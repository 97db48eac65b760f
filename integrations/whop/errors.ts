/** Turns refused requests into `ProviderError`s (docs.whop.com/developer/troubleshooting). */
import { ProviderError } from '../provider-error.ts';
import type { ProviderAnswer } from '../send-request.ts';

type WhopErrorBody = { readonly code?: unknown; readonly type?: unknown; readonly message?: unknown };

/** Statuses after which the request is repeated: 408 timeout, 409 same request in flight, 425 too early, 429 too many requests. */
const WAIT = new Set([408, 409, 425, 429]);

export function buildWhopError({ status, body, retry_after_seconds }: ProviderAnswer): ProviderError {
  const { code, type, message } = parseBody(body);
  const provider_code = [code, type].find((one): one is string => typeof one === 'string') ?? null;
  const text = typeof message === 'string' ? message : `status ${status}, and no answer that can be read`;
  const full = `Whop: ${text}${provider_code === null ? '' : ` (${provider_code})`}`;
  if (status < 400 || status >= 500 || WAIT.has(status))
    return new ProviderError('wait', full, { provider_code, retry_after_seconds });
  const is_unauthorized = status === 401 || status === 403;
  return new ProviderError('person', full, { provider_code, is_unauthorized, is_missing: status === 404 });
}

function parseBody(body: unknown): WhopErrorBody {
  const error = (body as { readonly error?: unknown } | null | undefined)?.error;
  return typeof error === 'object' && error !== null ? error : {};
}
