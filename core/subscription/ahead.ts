/**
 * A change of a price that lies ahead when a subscription starts: it takes both prices over, and is charged once
 * (docs/rules/subscriptions.md, "What is taken over from the plan").
 */
import { type BilledItem, type BilledSubscription, roundUpToPeriodEnd } from '../billing/charges.ts';
import type { Price } from '../price/record.ts';
import { formatMs, type Milliseconds, toInstant } from '../time/instant.ts';
import { itemOf, rootOf } from './plan-sync.ts';

export type AheadQuestion = {
  readonly billed: BilledSubscription;
  readonly reset_usage: ReadonlyMap<string, BilledItem['reset_usage']>;
  readonly now: Milliseconds;
};

/**
 * Of what is charged once the first price only; and of a meter that never resets each price for whole periods, since two
 * lines in one would charge what stands twice. The prices are in the order of their making.
 */
export function chargedOnce(prices: readonly Price[], question: AheadQuestion): Price[] {
  const ends = new Map<string, string | null>();
  return prices.flatMap((price) => {
    const before = ends.get(rootOf(price)) ?? null;
    const isFirst = !ends.has(rootOf(price));
    if (!isFirst && price.billing_period === 'ONETIME') return [];
    const changed = standsAcrossPeriods(price, question) ? inWholePeriods(price, before, question) : price;
    if (changed.end_date && changed.start_date && toInstant(changed.end_date) <= toInstant(changed.start_date))
      return [];
    ends.set(rootOf(price), changed.end_date ?? null);
    return [changed];
  });
}

function standsAcrossPeriods({ meter_id }: Price, { reset_usage }: AheadQuestion): boolean {
  return meter_id !== null && reset_usage.get(meter_id) === 'NEVER';
}

/** `before`: until when the price before it is charged. */
function inWholePeriods(price: Price, before: string | null, { billed, now }: AheadQuestion): Price {
  const stated = price.start_date ? toInstant(price.start_date) : billed.start_ms;
  const start = before === null ? stated : Math.max(stated, toInstant(before));
  const start_date = start === stated ? price.start_date : formatMs(start);
  if (!price.end_date || toInstant(price.end_date) <= start) return { ...price, start_date };
  const item = itemOf(price, start > now ? Math.max(start, billed.start_ms) : billed.start_ms);
  const end_date = formatMs(roundUpToPeriodEnd(toInstant(price.end_date), item, billed));
  return { ...price, start_date, end_date };
}
