/** Requests to check, hold and commit (docs/rules/reservations.md). */
import { z } from 'zod';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { anyCase, decimalText, freeMap, keyText, metadata, orNull, wholeNumber } from '../../foundation/record.ts';
import { checkCredits } from '../../rating/wallet/rates.ts';
import { ON_EXPIRY } from './record.ts';

const WEEK_SECONDS = 604_800;
export const ttlSeconds = wholeNumber.pipe(z.int().min(1).max(WEEK_SECONDS));

const holdShape = z.object({
  ttl_seconds: orNull(ttlSeconds).meta({
    description:
      'Duration of the hold in seconds, from 1 to 604800 (a week). Default: the setting `reservation_config`.',
  }),
  on_expiry: orNull(anyCase(ON_EXPIRY)).meta({
    description:
      'Action if the hold is neither committed nor released in time. Default: the setting `reservation_config`.',
  }),
  properties: orNull(freeMap).meta({
    description: "Properties of the event that a commit creates, such as those that the meter's filters need.",
  }),
  metadata,
});

export const checkShape = z.object({
  customer_id: orNull(z.string()).meta({
    description: 'Customer to check. Either this field or `external_customer_id` is required.',
  }),
  external_customer_id: orNull(z.string()).meta({
    description: 'Your own id of the customer, as in its events. An alternative to `customer_id`.',
  }),
  feature_id: orNull(z.string()).meta({
    description: 'Feature to check. Exactly one of `feature_id`, `feature_lookup_key` and `credits` is required.',
  }),
  feature_lookup_key: orNull(keyText).meta({
    description: 'Lookup key of the feature. An alternative to `feature_id`.',
  }),
  quantity: orNull(decimalText).meta({
    description:
      'Requested units of a metered feature, at least 0; default 1. 0 checks whether the current usage exceeds a limit, and cannot be held. Refused with `credits`.',
  }),
  credits: orNull(decimalText).meta({
    description: 'Requested credits; more than 0, at most 12 decimals. An alternative to a feature.',
  }),
  wallet_id: orNull(z.string()).meta({
    description: 'Wallet of the credits. Default: the active prepaid wallet of the customer. Refused for a feature.',
  }),
  currency: orNull(z.string().length(3)).meta({
    description: 'Currency that selects one of several wallets. Refused for a feature.',
  }),
  hold: orNull(holdShape).meta({ description: 'Holds the quantity if it is allowed. Null only checks.' }),
  idempotency_key: orNull(keyText).meta({
    description:
      'Idempotency key of the reservation. A repeated key returns the same reservation, whatever is left then. Refused without `hold`.',
  }),
});
export type ReservationCheckInput = z.output<typeof checkShape>;

export const commitShape = z.object({
  quantity: orNull(decimalText).meta({
    description:
      'Units or credits that were used; they may be less or more than the held quantity. Default: the held quantity.',
  }),
  properties: orNull(freeMap).meta({ description: 'Properties of the event in addition to those of the reservation.' }),
});
export type ReservationCommitInput = z.output<typeof commitShape>;

/** The request must name exactly one feature, or a number of credits. */
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
