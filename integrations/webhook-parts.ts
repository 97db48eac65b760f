/** Parts that the webhooks of all providers share. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { FarthingError } from '../core/foundation/error.ts';

/** Every wrong signature has one answer, so that a forger learns nothing from it. */
export function buildSignatureRefusal(): FarthingError {
  return new FarthingError('permission_denied', 'the signature is not valid', { http_status_code: 401 });
}

/** Compares two texts in a time that depends on neither. Their digests have one length, which the comparison needs. */
export function isSameSecret(given: string, secret: string): boolean {
  return timingSafeEqual(digestText(given), digestText(secret));
}

export function digestText(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/**
 * Parses the body of a webhook. It is undefined if the body is no JSON in UTF-8, so that the shape of the provider's events refuses it;
 * no error quotes it. Ids that may be longer than a JavaScript number need `parseExactJson`.
 */
export function parseJsonBody(body: Uint8Array, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

/** Instant in UTC of a time at the provider; null if it has none that can be read. */
export function toInstantText(text: string | null | undefined): string | null {
  const ms = Date.parse(text ?? '');
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}
