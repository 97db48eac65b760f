/** Whether an uninvoiced amount reaches the threshold of a subscription. No threshold, or one of 0, is never reached. */
import { Decimal } from '../foundation/decimal.ts';

export function hasReachedThreshold(threshold: string | null, amount: Decimal): boolean {
  if (threshold === null || !new Decimal(threshold).gt(0)) return false;
  return amount.gt(0) && amount.gte(threshold);
}
