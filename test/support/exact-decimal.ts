import { Decimal } from '../../core/foundation/decimal.ts';
import { type Exact, exactText } from '../../core/metering/exact.ts';

/** An exact quantity as a Decimal, for comparison with what a test expects. */
export function toDecimal(quantity: Exact): Decimal {
  return new Decimal(exactText(quantity));
}
