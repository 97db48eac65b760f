/** Turns errors of Chargebee into `ProviderError`s (apidocs.chargebee.com, "Error handling and rate limits"). */
import { ProviderError } from '../provider-error.ts';
import type { ProviderAnswer } from '../send-request.ts';

type ChargebeeFailure = {
  readonly message?: string;
  readonly api_error_code?: string;
  readonly param?: string;
};

/** Pause after too many requests, after which the count of Chargebee begins again. */
const LIMIT_PAUSE_SECONDS = 60;
const DUPLICATE = 'duplicate_entry';
const MISSING = 'resource_not_found';

/** Codes of a key that is refused, and of a site that does not exist. */
const UNAUTHORIZED_CODES = new Set(['api_authentication_failed', 'api_authorization_failed', 'site_not_found']);
/** Codes of 4xx answers after which the request is repeated. */
const WAIT_CODES = new Set([
  'api_request_limit_exceeded',
  'third_party_api_request_limit_exceeded',
  'lock_timeout',
  'site_not_ready',
  'site_read_only_mode',
]);
const WAIT_STATUSES = new Set([408, 425, 429]);

export class ChargebeeError extends ProviderError {
  /** Name of the parameter that Chargebee refused; null if it names none. */
  readonly parameter: string | null;

  constructor(parameter: string | null, ...rest: ConstructorParameters<typeof ProviderError>) {
    super(...rest);
    this.parameter = parameter;
  }
}

/** Builds the error of an answer without a success status, or without JSON. */
export function buildChargebeeError({ status, body, retry_after_seconds }: ProviderAnswer): ChargebeeError {
  const { message, api_error_code = '', param = null } = parseError(body);
  const facts = [api_error_code, param].filter(Boolean).join(', ');
  const text = `Chargebee: ${message || `status ${status}`}${facts === '' ? '' : ` (${facts})`}`;
  const details = { provider_code: api_error_code || null };
  if (status === 429 || api_error_code.endsWith('request_limit_exceeded'))
    return new ChargebeeError(param, 'wait', text, {
      ...details,
      retry_after_seconds: retry_after_seconds ?? LIMIT_PAUSE_SECONDS,
    });
  // Other conflicts than a wrong state are temporary, such as a request with the same key in progress.
  const isConflict = status === 409 && !api_error_code.startsWith('invalid_');
  const isTransient = WAIT_STATUSES.has(status) || WAIT_CODES.has(api_error_code) || isConflict;
  if (status < 400 || status >= 500 || isTransient)
    return new ChargebeeError(param, 'wait', text, { ...details, retry_after_seconds });
  const is_unauthorized = status === 401 || status === 403 || UNAUTHORIZED_CODES.has(api_error_code);
  // Another 404, such as that of a proxy, does not show that the record is gone.
  const is_missing = status === 404 && api_error_code === MISSING;
  return new ChargebeeError(param, 'person', text, { ...details, is_unauthorized, is_missing });
}

function parseError(body: unknown): ChargebeeFailure {
  if (typeof body !== 'object' || body === null) return {};
  const texts = Object.entries(body).filter(([, value]) => typeof value === 'string');
  return Object.fromEntries(texts);
}

export function isDuplicate(error: unknown): boolean {
  return error instanceof ProviderError && error.provider_code === DUPLICATE;
}
