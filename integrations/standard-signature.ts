/**
 * Signature of Standard Webhooks, which Svix sends under its own header names: base64 HMAC-SHA256 of `id.timestamp.body`. While a secret is
 * rotated, the header has several signatures.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** Maximum age of a delivery; an older one may be a replay. A retry is signed with a new time. */
const TOLERANCE_SECONDS = 300;

type StandardDelivery = {
  readonly id: string;
  /** Unix time in seconds. */
  readonly timestamp: string;
  /** Signatures, such as `v1,<base64>`, separated by spaces. */
  readonly signatures: string;
  readonly body: Uint8Array;
  readonly now: Date;
};

/** Whether one of the keys signed the delivery, and its time is near. */
export function isStandardSignature(
  keys: readonly Uint8Array[],
  { id, timestamp, signatures, body, now }: StandardDelivery,
): boolean {
  const age_seconds = now.getTime() / 1_000 - Number(timestamp);
  const isTimely = /^\d{1,12}$/.test(timestamp) && Math.abs(age_seconds) <= TOLERANCE_SECONDS;
  const expected = keys.map((key) => createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest());
  const given = signatures.split(' ').flatMap((one) => {
    const text = /^v1,([A-Za-z0-9+/]{43}=)$/.exec(one)?.[1];
    return text === undefined ? [] : [Buffer.from(text, 'base64')];
  });
  const matching = expected.flatMap((one) => given.filter((signature) => timingSafeEqual(signature, one)));
  return isTimely && id !== '' && matching.length > 0;
}

/** Decodes a secret `whsec_<base64>`. Null if it has another form, or no bytes: anybody could sign with an empty key. */
export function decodeStandardSecret(secret: string): Uint8Array | null {
  const key = Buffer.from(/^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1] ?? '', 'base64');
  return key.length === 0 ? null : key;
}
