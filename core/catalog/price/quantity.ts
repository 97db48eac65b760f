/** Default number of units of a FIXED price (docs/rules/subscriptions.md, "Quantities"). */
import { Decimal } from '../../foundation/decimal.ts';

export function defaultQuantity({ min_quantity }: { readonly min_quantity: string | null }): string {
  return min_quantity && !new Decimal(min_quantity).isZero() ? min_quantity : '1';
}
