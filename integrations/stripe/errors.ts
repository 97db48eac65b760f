/**
 * Turns errors of the Stripe library into `ProviderError`s (docs.stripe.com/api/errors, docs.stripe.com/error-codes).
 */
import type { Stripe } from 'stripe';
import { ProviderError, parseRetryAfter } from '../provider-error.ts';

type StripeError = Stripe.errors.StripeError;

/** Error codes that mean that the record is already in the wanted state. */
const DONE_CODES = new Set(['resource_already_exists', 'charge_already_captured', 'charge_already_refunded']);
/** Error codes that mean that the key was revoked, lacks a right, or belongs to a closed account. */
const UNAUTHORIZED_CODES = new Set([
  'api_key_expired',
  'platform_api_key_expired',
  'account_invalid',
  'account_closed',
]);
const WAIT_CODES = new Set(['rate_limit', 'lock_timeout', 'idempotency_key_in_use']);
/** Matches parts of a refused key, which Stripe quotes in its message. */
const QUOTED_KEY = /\b(?:sk|rk|pk)_(?:test|live)_\S+/g;

/** Every failure of Stripe leaves this folder as a `ProviderError`. */
export async function translate<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw toProviderError(error);
  }
}

/**
 * Turns an error of Stripe into a `ProviderError`. Any other error is a fault of this service and returned unchanged.
 */
export function toProviderError(error: unknown): unknown {
  if (!isStripeError(error)) return error;
  // The request was not sent, because it would have waited too long for the rate limit. The library reports this as a
  // failed connection, whose `detail` is the original error.
  if ((error.detail as unknown) instanceof ProviderError) return error.detail;
  const { code = null, statusCode: status, requestId, headers } = error;
  const reason = error.message.replace(QUOTED_KEY, 'the key') || `status ${status}`;
  const facts = [code, requestId].filter(Boolean).join(', ');
  const message = `Stripe: ${reason}${facts === '' ? '' : ` (${facts})`}`;
  const details = { provider_code: code, cause: error };
  if (isTransient(error))
    return new ProviderError('wait', message, {
      ...details,
      retry_after_seconds: parseRetryAfter(headers?.['retry-after']),
    });
  if (code !== null && DONE_CODES.has(code)) return new ProviderError('done', message, details);
  const is_unauthorized = status === 401 || status === 403 || (code !== null && UNAUTHORIZED_CODES.has(code));
  // The cause of a refused key is omitted, because it quotes the key.
  if (is_unauthorized) return new ProviderError('person', message, { provider_code: code, is_unauthorized });
  return new ProviderError('person', message, { ...details, is_missing: status === 404 });
}

/**
 * Whether the failure may be temporary. An error without a status means that the connection failed, or that the answer
 * was not JSON.
 */
function isTransient({ statusCode, code }: StripeError): boolean {
  if (statusCode === undefined || statusCode < 400 || statusCode >= 500) return true;
  return [409, 424, 429].includes(statusCode) || (code !== undefined && WAIT_CODES.has(code));
}

/**
 * Whether no request with this key will ever succeed: an earlier one had other parameters, or Stripe repeats a stored
 * failure. The record may exist or not.
 */
export function isKeyUnusable(error: unknown): boolean {
  if (!isStripeError(error)) return false;
  const { statusCode = 0, rawType, headers = {} } = error;
  if (statusCode === 400) return rawType === 'idempotency_error';
  return statusCode >= 500 && headers['idempotent-replayed'] === 'true';
}

/** Returns the payment intent of a charge that the bank declined, which is part of the error; null for other errors. */
export function findDeclinedIntent(error: unknown): Stripe.PaymentIntent | null {
  return isStripeError(error) && error.statusCode === 402 ? (error.payment_intent ?? null) : null;
}

export function isRefused(error: unknown): boolean {
  return isStripeError(error) && error.statusCode === 400;
}

export function isMissing(error: unknown): boolean {
  return isStripeError(error) && error.statusCode === 404;
}

/** Whether the key is valid but may not make this request. */
export function isForbidden(error: unknown): boolean {
  return isStripeError(error) && error.statusCode === 403 && !UNAUTHORIZED_CODES.has(error.code ?? '');
}

/**
 * Recognizes an error of Stripe by its fields, because the class is in the library, which is loaded only when an
 * account is opened.
 */
function isStripeError(error: unknown): error is StripeError {
  return error instanceof Error && 'type' in error && 'rawType' in error && 'requestId' in error;
}
