/** Used share of a limit, in percent with two decimals (docs/rules/entitlements.md, "Usage against limits"). */
import { Decimal, ZERO } from '../../foundation/decimal.ts';

const ALL = new Decimal('100');

export function computeUsagePercent(used: Decimal, limit: Decimal | null): Decimal {
  if (limit === null) return ZERO;
  if (limit.isZero()) return used.gt(0) ? ALL : ZERO;
  return used.times(ALL).div(limit).toDecimalPlaces(2);
}
