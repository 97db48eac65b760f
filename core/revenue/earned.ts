/**
 * What of an amount is earned in a range of time: an amount is earned evenly over the time that it pays for, and what pays for no time
 * at its instant (docs/rules/costs.md, "When it is earned"). Ranges side by side add up to the amount to the last minor unit.
 */
import { type Decimal, ZERO } from '../decimal.ts';
import { roundMoney } from '../money.ts';
import type { Period } from '../time/period.ts';

export type EarnedAmount = { readonly amount: Decimal; readonly currency: string; readonly service: Period };

export function computeEarned(range: Period, { amount, currency, service }: EarnedAmount): Decimal {
  if (service.start === service.end) return service.start >= range.start && service.start < range.end ? amount : ZERO;
  const from = Math.max(service.start, range.start);
  const to = Math.min(service.end, range.end);
  if (from >= to) return ZERO;
  const until = (at: number) => computeEarnedUntil(at, { amount, currency, service });
  return until(to).minus(until(from));
}

/** Rounded is what has been earned up to an instant, so that nothing is lost between two of them. */
function computeEarnedUntil(at: number, { amount, currency, service: { start, end } }: EarnedAmount): Decimal {
  if (at === end) return amount;
  return roundMoney(amount.times(at - start).dividedBy(end - start), currency);
}
