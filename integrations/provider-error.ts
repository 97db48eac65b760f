/**
 * A failed call of a provider. Its class decides what follows:
 * - `wait`: the provider is unreachable, limits requests or has a fault of its own. The same call is made again, with the same key.
 * - `person`: the request or the credentials are refused. Repeating the call changes nothing until a person acts.
 * - `done`: the record exists already, or is in the wanted state.
 */
type ProviderErrorClass = 'wait' | 'person' | 'done';

export class ProviderError extends Error {
  readonly error_class: ProviderErrorClass;
  /** The credentials were refused, so every further call of this connection would fail. */
  readonly is_unauthorized: boolean;
  /** The fault lies in the state of this record alone: other calls of the connection succeed. */
  readonly is_of_record: boolean;
  /** The provider has no such record. */
  readonly is_missing: boolean;
  /** Wait that the provider requests; null if it requests none. */
  readonly retry_after_seconds: number | null;
  /** Error code of the provider, for a person who searches its documentation. */
  readonly provider_code: string | null;
  /** The record that exists already, if the provider names it. */
  readonly provider_entity_id: string | null;

  constructor(
    error_class: ProviderErrorClass,
    message: string,
    {
      is_unauthorized = false,
      is_of_record = false,
      is_missing = false,
      retry_after_seconds = null,
      provider_code = null,
      provider_entity_id = null,
      cause,
    }: {
      is_unauthorized?: boolean;
      is_of_record?: boolean;
      is_missing?: boolean;
      retry_after_seconds?: number | null;
      provider_code?: string | null;
      provider_entity_id?: string | null;
      cause?: unknown;
    } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ProviderError';
    this.error_class = error_class;
    this.is_unauthorized = is_unauthorized;
    this.is_of_record = is_of_record;
    this.is_missing = is_missing;
    this.retry_after_seconds = retry_after_seconds;
    this.provider_code = provider_code;
    this.provider_entity_id = provider_entity_id;
  }
}

/** Parses the seconds of the header `Retry-After`; null if the header is absent or contains a date. */
export function parseRetryAfter(text: unknown): number | null {
  return typeof text === 'string' && /^\d{1,6}$/.test(text) ? Number(text) : null;
}

/** Whether the provider refused the request, so that it had no effect. Refused credentials do not count. */
export function isRefused(error: unknown): error is ProviderError {
  return error instanceof ProviderError && error.error_class === 'person' && !error.is_unauthorized;
}

/** Whether the provider does not have the record. */
export function isMissing(error: unknown): boolean {
  return error instanceof ProviderError && error.is_missing;
}
