/** What clients say of checks and reservations (docs/rules/reservations.md). */
import { z } from 'zod';
import { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import { anyCase, decimalText, freeMap, keyText, metadata, orNull, wholeNumber } from '../record.ts';
import { checkCredits } from '../wallet/rates.ts';
import { ON_EXPIRY } from './record.ts';

const WEEK_SECONDS = 604_800;
export const ttlSeconds = wholeNumber.pipe(z.int().min(1).max(WEEK_SECONDS));

export const holdShape = z.object({
  ttl_seconds: orNull(ttlSeconds).meta({
    description: 'For how long, from 1 second to a week; as the setting `reservation_config` says when absent.',
  }),
  on_expiry: orNull(anyCase(ON_EXPIRY)).meta({
    description:
      'What becomes of it when nobody ends it in time; as the setting `reservation_config` says when absent.',
  }),
  properties: orNull(freeMap).meta({
    description: 'Properties of the event that it becomes, such as those that the filters of the meter ask for.',
  }),
  metadata,
});

export const checkShape = z.object({
  customer_id: orNull(z.string()).meta({ description: 'Whose it is; or `external_customer_id`.' }),
  external_customer_id: orNull(z.string()).meta({ description: 'The customer by the id that its events name.' }),
  feature_id: orNull(z.string()).meta({
    description: 'The feature that it wants to use; or its lookup key, or credits.',
  }),
  feature_lookup_key: orNull(keyText).meta({ description: 'The feature by its lookup key.' }),
  quantity: orNull(decimalText).meta({
    description: 'How many units of a metered feature; 1 when absent, 0 asks whether anything is beyond the limit.',
  }),
  credits: orNull(decimalText).meta({ description: 'How many credits it wants to spend, instead of a feature.' }),
  wallet_id: orNull(z.string()).meta({
    description: 'Of credits: the wallet; the one active prepaid wallet of the customer when absent.',
  }),
  currency: orNull(z.string().length(3)).meta({ description: 'Of credits: which wallet, where it has several.' }),
  hold: orNull(holdShape).meta({ description: 'Whether it is set apart, and how; null only asks.' }),
  idempotency_key: orNull(keyText).meta({
    description: 'One key is one reservation: asked again, the same is answered, whatever is left by then.',
  }),
});
export type ReservationCheckInput = z.output<typeof checkShape>;

export const commitShape = z.object({
  quantity: orNull(decimalText).meta({
    description: 'How many were used, less or more than are held; all of them when absent.',
  }),
  properties: orNull(freeMap).meta({ description: 'Properties of the event beside those of the reservation.' }),
});
export type ReservationCommitInput = z.output<typeof commitShape>;

/** What is asked about, and about one thing alone. */
export function checkReservationInput(request: ReservationCheckInput): void {
  const { feature_id, feature_lookup_key, credits, wallet_id, currency, quantity, hold, idempotency_key } = request;
  const named = [feature_id, feature_lookup_key, credits].filter((one) => one !== null);
  if (named.length !== 1) throw invalid('feature_id', 'or feature_lookup_key, or credits: one of them is required');
  if (credits !== null) {
    checkCredits('credits', credits);
    if (quantity !== null) throw invalid('quantity', 'is of features: credits says how many credits');
  } else if (wallet_id !== null || currency !== null)
    throw invalid(wallet_id === null ? 'currency' : 'wallet_id', 'does not go with a feature');
  if (quantity !== null && new Decimal(quantity).isNegative()) throw invalid('quantity', 'must not be below 0');
  if (hold && quantity !== null && new Decimal(quantity).isZero())
    throw invalid('quantity', 'must be more than 0 to be held');
  if (!hold && idempotency_key !== null) throw invalid('idempotency_key', 'is the key of a reservation: say hold');
}
