/**
 * Usage lines with their chains in a queried interval (docs/rules/proration.md, "Usage over a change"): a billing period, or any range,
 * which is charged like an invoice for exactly this range.
 */
import type { Period } from '../../foundation/time/period.ts';
import { type BilledItem, type BilledSubscription, levelPeriod, usageWindowIn } from '../charges.ts';
import { type Chain, type ChainLine, computeChainUsageWindow, findChains, type Linkable } from './chain.ts';
import { periodsWithin } from './levels.ts';

export type ServedLine<Item> = ChainLine<Item> & {
  /** Interval in which events of the line are counted. */
  readonly usage_window: Period;
  readonly chain?: Chain<Item>;
};

/** An item and its queried interval. */
export type QueriedItem<Item> = { readonly item: Item; readonly period: Period };

export function planServedLines<Item extends BilledItem>(
  queried: readonly QueriedItem<Item>[],
  subscription: BilledSubscription,
): ServedLine<Item>[] {
  const served = queried.flatMap(({ item, period }) => {
    const window = usageWindowIn(period, item, subscription);
    if (window === null) return [];
    const service = { start: Math.max(period.start, item.start_ms), end: window.end };
    return [{ item, service, usage_window: window, ...sharedPeriod(period, item, subscription) }];
  });
  const chains = findChains(served);
  return served.map((one) => servedLine(one, chains.get(one)));
}

function servedLine<Item extends BilledItem>(
  { item, service, usage_window }: Linkable<Item> & { usage_window: Period },
  chain: Chain<Item> | undefined,
): ServedLine<Item> {
  return chain
    ? { item, service, usage_window: computeChainUsageWindow(chain, service), chain }
    : { item, service, usage_window };
}

type SharedPeriod = Pick<Linkable<BilledItem>, 'whole' | 'begins' | 'level_since'>;

/**
 * Returns the regular period of the queried interval. Several periods are joined from the first to the last, except for a level
 * (WEIGHTED_SUM), which is measured in the first.
 */
function sharedPeriod(interval: Period, item: BilledItem, subscription: BilledSubscription): SharedPeriod {
  const periods = periodsWithin(interval, item, subscription).map((period) => levelPeriod(period, item, subscription));
  const [first] = periods;
  if (!first) return { whole: interval, begins: interval.start, level_since: interval.start };
  if (item.chain_terms?.rule === 'integral') return first;
  return { ...first, whole: { start: first.whole.start, end: periods.at(-1)!.whole.end } };
}
