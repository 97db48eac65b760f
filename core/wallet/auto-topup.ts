/**
 * Whether a wallet is to be filled by itself, and how often at once (docs/rules/wallets.md, "Filled by itself"): while its credits in real
 * time are not above the threshold. Amounts are credits.
 */
import type { Decimal } from '../decimal.ts';
import type { AutoTopup } from './record.ts';

type AutoTopupState = {
  readonly credits: Decimal;
  /** When it was filled by itself last. */
  readonly last_at: Date | null;
  /** An invoice for it is not paid, or credits of it are still to come. */
  readonly isWaiting: boolean;
  readonly now: Date;
};

/** A threshold that is out of reach of its amount is come nearer to with each run. */
const AT_ONCE_MAX = 100;
const UNIT_MS = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

/** How many times `amount` is put in. */
export function computeTopupCount(
  { enabled, threshold, amount, invoicing, cooldown }: AutoTopup,
  seen: AutoTopupState,
): number {
  if (!enabled || seen.credits.gt(threshold)) return 0;
  if (invoicing && seen.isWaiting) return 0;
  if (cooldown && seen.last_at && seen.now.getTime() < seen.last_at.getTime() + cooldown.value * UNIT_MS[cooldown.unit])
    return 0;
  if (invoicing || cooldown) return 1;
  let credits = seen.credits;
  let times = 0;
  while (times < AT_ONCE_MAX && credits.lte(threshold)) {
    credits = credits.plus(amount);
    times++;
  }
  return times;
}
