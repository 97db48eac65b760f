/** Lines of final invoices, without discounts and taxes, for tests of core. */
import type { Decimal } from '../../core/foundation/decimal.ts';
import type { Period } from '../../core/foundation/time/period.ts';
import { buildAdjustments } from '../../core/rating/adjustment-fields.ts';
import type { BilledItemLine } from '../../core/rating/billed-before.ts';

/** Builds a line. It is a credit if the amount is below 0. */
export function toBilledLine({
  service,
  amount,
}: {
  readonly service: Period;
  readonly amount: Decimal;
}): BilledItemLine {
  const amounts = { amount: amount.toFixed(), quantity: '1', ...buildAdjustments(() => '0') };
  return { service, line: { id: 'x', price_type: 'FIXED', ...amounts } };
}
