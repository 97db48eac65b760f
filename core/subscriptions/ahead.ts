/**
 * Price changes of a plan that are scheduled when a subscription starts. The subscription takes over the current and
 * the scheduled price, and is charged by one of them at a time (docs/rules/subscriptions.md, "What is taken over from
 * the plan").
 */

import type { Price } from '../catalog/price/record.ts';
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import { type BilledItem, type BilledSubscription, roundUpToPeriodEnd } from '../rating/charges.ts';
import { toBilledItem, toRootId } from './plan-sync.ts';

export type ScheduledPriceInput = {
  readonly billed: BilledSubscription;
  readonly reset_usage: ReadonlyMap<string, BilledItem['reset_usage']>;
  readonly now: Milliseconds;
};

/**
 * Selects the scheduled prices that a subscription takes over, from `prices` in the order of creation. Of a one-time charge it takes only
 * the first price. On a meter that never resets, a price changes only at a period boundary, because two lines in one period would charge
 * the standing usage (such as seats) twice.
 */
export function planScheduledPrices(prices: readonly Price[], context: ScheduledPriceInput): Price[] {
  const ends = new Map<string, string | null>();
  return prices.flatMap((price) => {
    const before = ends.get(toRootId(price)) ?? null;
    const isFirst = !ends.has(toRootId(price));
    if (!isFirst && price.billing_period === 'ONETIME') return [];
    const changed = isNeverReset(price, context) ? alignToPeriods(price, before, context) : price;
    if (changed.end_date && changed.start_date && toInstant(changed.end_date) <= toInstant(changed.start_date))
      return [];
    ends.set(toRootId(price), changed.end_date ?? null);
    return [changed];
  });
}

function isNeverReset({ meter_id }: Price, { reset_usage }: ScheduledPriceInput): boolean {
  return meter_id !== null && reset_usage.get(meter_id) === 'NEVER';
}

/**
 * Delays the start of a price to the end of the preceding price, and its own end to a period boundary. `before` is the end of the preceding
 * price, or null if there is none.
 */
function alignToPeriods(price: Price, before: string | null, { billed, now }: ScheduledPriceInput): Price {
  const priceStart = price.start_date ? toInstant(price.start_date) : billed.start_ms;
  const start = before === null ? priceStart : Math.max(priceStart, toInstant(before));
  const start_date = start === priceStart ? price.start_date : formatMs(start);
  if (!price.end_date || toInstant(price.end_date) <= start) return { ...price, start_date };
  const item = toBilledItem(price, start > now ? Math.max(start, billed.start_ms) : billed.start_ms);
  const end_date = formatMs(roundUpToPeriodEnd(toInstant(price.end_date), item, billed));
  return { ...price, start_date, end_date };
}
