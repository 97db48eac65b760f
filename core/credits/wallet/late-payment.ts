/** Credits that are paid after they were ordered (docs/rules/wallets.md, "Top-ups"). */
import type { Milliseconds } from '../../foundation/time/instant.ts';

type CreditOrder = { readonly ordered_ms: Milliseconds; readonly expiry_ms: Milliseconds | null };

/**
 * Computes the expiry of credits that are paid now. If the ordered expiry has passed, the credits are valid for the time between order and
 * ordered expiry, from now.
 */
export function computeExpiryWhenPaid(
  { ordered_ms, expiry_ms }: CreditOrder,
  now_ms: Milliseconds,
): Milliseconds | null {
  if (expiry_ms === null || expiry_ms > now_ms) return expiry_ms;
  return now_ms + (expiry_ms - ordered_ms);
}
