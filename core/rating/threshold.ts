/** Whether an uninvoiced amount reaches the invoice threshold of a subscription; false if the threshold is absent or 0. */
import { Decimal } from '../foundation/decimal.ts';

export function hasReachedThreshold(threshold: string | null, amount: Decimal): boolean {
  if (threshold === null || !new Decimal(threshold).gt(0)) return false;
  return amount.gt(0) && amount.gte(threshold);
}
