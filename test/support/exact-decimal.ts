import { Decimal } from '../../core/foundation/decimal.ts';
import { type Exact, exactText } from '../../core/metering/exact.ts';

/** Converts an exact quantity to a Decimal, for comparison with expected values. */
export function toDecimal(quantity: Exact): Decimal {
  return new Decimal(exactText(quantity));
}
