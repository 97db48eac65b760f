/** Total credit and charge of a plan change, in the shape of the API response. */

import { Decimal, sumDecimals } from '../foundation/decimal.ts';
import { formatMs, type Milliseconds } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';
import { calendarDays } from '../foundation/time/period.ts';
import type { PlannedLine } from '../rating/line-amount.ts';

export function buildProrationSummary(
  lines: readonly PlannedLine[],
  { at, current, currency, timezone }: { at: Milliseconds; current: Period; currency: string; timezone: string },
) {
  const amounts = lines.map(({ amount }) => amount);
  const credit = sumDecimals(amounts.filter((amount) => amount.isNegative())).negated();
  const charge = sumDecimals(amounts.filter((amount) => !amount.isNegative()));
  const instant = Math.min(Math.max(at, current.start), current.end);
  return {
    credit_amount: Decimal.max(0, credit).toFixed(),
    credit_description: 'Unused time of the plan before',
    charge_amount: charge.toFixed(),
    charge_description: 'The new plan until the end of the period',
    net_amount: charge.minus(credit).toFixed(),
    proration_date: formatMs(at),
    current_period_start: formatMs(current.start),
    current_period_end: formatMs(current.end),
    days_used: calendarDays(current.start, instant, timezone),
    days_remaining: calendarDays(instant, current.end, timezone),
    currency,
  };
}
