/** Removes credentials from errors of a provider, which may quote the request. */
import type { ProviderSecrets } from '../../../core/platform/connection/record.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';

/** Minimum length of a removed value: shorter values, such as a region, occur in ordinary texts. */
const SECRET_LENGTH_MIN = 6;
/** The value of an `Authorization` header, which may contain credentials in base64. */
const AUTHORIZATION = /\b(Basic|Bearer)\s+[\w+/=.~-]+/gi;

/**
 * Returns the error of a provider without credentials and without its `cause`, which may contain the request. Any other error is returned
 * unchanged.
 */
export function redactError(error: unknown, secrets: ProviderSecrets): unknown {
  if (!(error instanceof ProviderError)) return error;
  // The longest first: a secret may begin with another one, such as a user name.
  const texts = Object.values(secrets)
    .flatMap(listForms)
    .sort((one, other) => other.length - one.length);
  const redact = (text: string) =>
    texts.reduce((left, secret) => left.replaceAll(secret, '[redacted]'), text.replace(AUTHORIZATION, '$1 [redacted]'));
  return new ProviderError(error.error_class, redact(error.message), {
    is_unauthorized: error.is_unauthorized,
    is_of_record: error.is_of_record,
    is_missing: error.is_missing,
    retry_after_seconds: error.retry_after_seconds,
    provider_code: error.provider_code === null ? null : redact(error.provider_code),
    provider_entity_id: error.provider_entity_id,
  });
}

function listForms(value: unknown): string[] {
  if (typeof value !== 'string' || value.length < SECRET_LENGTH_MIN) return [];
  return [value, encodeURIComponent(value)];
}
