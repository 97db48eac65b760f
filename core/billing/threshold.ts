/** Whether so much that is not invoiced reaches the threshold of a subscription; none, or one of 0, is never reached. */
import { Decimal } from '../decimal.ts';

export function hasReachedThreshold(threshold: string | null, amount: Decimal): boolean {
  if (threshold === null || !new Decimal(threshold).gt(0)) return false;
  return amount.gt(0) && amount.gte(threshold);
}
