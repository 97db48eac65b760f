/** Credits that are paid after they were ordered (docs/rules/wallets.md, "Top-ups"). */
import type { Milliseconds } from '../time/instant.ts';

type CreditOrder = { readonly ordered_ms: Milliseconds; readonly expiry_ms: Milliseconds | null };

/** Until when they last that come now: nobody pays for what has expired, so then they last as long as they would have from the order. */
export function computeExpiryWhenPaid(
  { ordered_ms, expiry_ms }: CreditOrder,
  now_ms: Milliseconds,
): Milliseconds | null {
  if (expiry_ms === null || expiry_ms > now_ms) return expiry_ms;
  return now_ms + (expiry_ms - ordered_ms);
}
