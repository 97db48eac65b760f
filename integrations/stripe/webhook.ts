/**
 * Signature of Stripe's webhooks: `Stripe-Signature: t=<unix seconds>,v1=<hex>`, an HMAC-SHA256 of `t.body` with the whole `whsec_…` text as
 * its key (docs.stripe.com/webhooks/signature). While a secret is rotated, there are several `v1`.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { buildSignatureRefusal } from '../webhook-parts.ts';

/** Maximum age of a delivery; an older one may be a replay. Stripe signs a retry with a new time. */
const TOLERANCE_SECONDS = 300;

type SignedWebhook = {
  readonly secrets: readonly string[];
  readonly header: string | undefined;
  readonly body: Uint8Array;
  readonly now: Date;
};

/** Every refusal has one message, so that a forger learns nothing from it. */
export function checkStripeSignature({ secrets, header = '', body, now }: SignedWebhook): void {
  const { times, signatures } = parseHeader(header);
  const [time] = times;
  const isTimely =
    time !== undefined && times.length === 1 && Math.abs(now.getTime() / 1_000 - Number(time)) <= TOLERANCE_SECONDS;
  const expected = secrets.map((secret) => createHmac('sha256', secret).update(`${time}.`).update(body).digest());
  const given = signatures.map((signature) => Buffer.from(signature, 'hex'));
  const matching = expected.flatMap((one) => given.filter((signature) => timingSafeEqual(signature, one)));
  if (!isTimely || matching.length === 0) throw buildSignatureRefusal();
}

/**
 * Parses the header. Other schemes, such as the `v0` of test events, are ignored, because their signatures cannot be
 * checked.
 */
function parseHeader(header: string): { times: string[]; signatures: string[] } {
  const values = (name: string, form: RegExp) =>
    header
      .split(',')
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(`${name}=`))
      .map((pair) => pair.slice(name.length + 1))
      .filter((value) => form.test(value));
  return { times: values('t', /^\d{1,12}$/), signatures: values('v1', /^[0-9a-f]{64}$/) };
}
