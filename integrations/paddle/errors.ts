/** Turns refused requests into `ProviderError`s (developer.paddle.com/api-reference/about/errors and /rate-limiting). */
import { ProviderError } from '../provider-error.ts';
import type { ProviderAnswer } from '../send-request.ts';

type FieldError = { readonly field?: unknown; readonly message?: unknown };
type PaddleErrorBody = { readonly code?: unknown; readonly detail?: unknown; readonly errors?: unknown };

const CUSTOMER_EXISTS = 'customer_already_exists';
const NOT_FOUND = new Set(['not_found', 'entity_not_found']);
/** Codes of a 409 after which the same request may succeed. */
const CONFLICTS = new Set(['conflict', 'concurrent_modification']);
/** Facts that Paddle's own text omits. */
const HINTS: Readonly<Record<string, string>> = {
  transaction_address_not_suitable_for_collection_mode:
    'the address of the customer needs a country, postal code, state, city and first line',
  transaction_default_checkout_url_not_set: 'set the default payment link in Paddle (Checkout settings)',
};

export function buildPaddleError({ status, body, retry_after_seconds }: ProviderAnswer): ProviderError {
  const error = parseBody(body);
  const code = typeof error.code === 'string' ? error.code : null;
  const message = describe(error, status, code);
  if (status < 400 || status === 408 || status === 429 || status >= 500 || (code !== null && CONFLICTS.has(code)))
    return new ProviderError('wait', message, { provider_code: code, retry_after_seconds });
  return new ProviderError('person', message, {
    provider_code: code,
    is_unauthorized: status === 401 || status === 403,
    is_missing: status === 404 || (code !== null && NOT_FOUND.has(code)),
  });
}

function parseBody(body: unknown): PaddleErrorBody {
  const error = (body as { error?: unknown } | null | undefined)?.error;
  return typeof error === 'object' && error !== null ? error : {};
}

function describe({ detail, errors }: PaddleErrorBody, status: number, code: string | null): string {
  const fields = (Array.isArray(errors) ? (errors as FieldError[]) : []).map(
    ({ field, message }) => `${String(field)}: ${String(message)}`,
  );
  const facts = [...(code === null ? [] : [code]), ...fields].join(', ');
  const text =
    typeof detail === 'string' && detail !== '' ? detail : `status ${status}, and no answer that can be read`;
  const hint = code !== null && Object.hasOwn(HINTS, code) ? `: ${HINTS[code]}` : '';
  return `Paddle: ${text}${facts === '' ? '' : ` (${facts})`}${hint}`;
}

/** Returns the customer that has the email already, which the refusal of a new customer names; null for another error. */
export function findConflictingCustomer(error: unknown): string | null {
  if (!(error instanceof ProviderError) || error.provider_code !== CUSTOMER_EXISTS) return null;
  return /\bctm_[a-z\d]{26}\b/.exec(error.message)?.[0] ?? null;
}
