/**
 * Part of an amount that is earned in a range of time. An amount is earned evenly over its service period; without a period, at its instant
 * (docs/rules/costs.md, "When it is earned"). Consecutive ranges sum to the amount, to the last minor unit.
 */
import { type Decimal, ZERO } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import type { Period } from '../../foundation/time/period.ts';

export type EarnedAmount = { readonly amount: Decimal; readonly currency: string; readonly service: Period };

export function computeEarned(range: Period, { amount, currency, service }: EarnedAmount): Decimal {
  if (service.start === service.end) return service.start >= range.start && service.start < range.end ? amount : ZERO;
  const from = Math.max(service.start, range.start);
  const to = Math.min(service.end, range.end);
  if (from >= to) return ZERO;
  const until = (at: number) => computeEarnedUntil(at, { amount, currency, service });
  return until(to).minus(until(from));
}

/** Amount earned until an instant. The cumulative amount is rounded, so that rounding loses nothing between two instants. */
function computeEarnedUntil(at: number, { amount, currency, service: { start, end } }: EarnedAmount): Decimal {
  if (at === end) return amount;
  return roundMoney(amount.times(at - start).dividedBy(end - start), currency);
}
