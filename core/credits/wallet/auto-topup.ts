/**
 * Decides whether a wallet is topped up automatically, and how many times at once (docs/rules/wallets.md, "Automatic top-up"). Top-ups
 * continue while the real-time credits are not above the threshold. Amounts are credits.
 */
import type { Decimal } from '../../foundation/decimal.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../foundation/time/durations.ts';
import type { AutoTopup } from './record.ts';

type AutoTopupState = {
  readonly credits: Decimal;
  /** Time of the last automatic top-up; null if there was none. */
  readonly last_at: Date | null;
  /** An invoice of an automatic top-up is unpaid, or its credits are pending. */
  readonly isWaiting: boolean;
  readonly now: Date;
};

/** Maximum number of top-ups per run. If the threshold is far above the top-up amount, several runs are needed. */
const AT_ONCE_MAX = 100;
const UNIT_MS = { second: SECOND_MS, minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;

/** Number of top-ups of `amount` credits. */
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
