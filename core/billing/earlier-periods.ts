/**
 * The periods in which a subscription was before they began anew (docs/rules/subscriptions.md, "Plan changes"): what began in
 * them, and was cut, is still measured by their grid, however often it is computed again.
 */
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import type { BilledSubscription, PeriodGrid } from './charges.ts';

/** With the grid in which it was at an instant, as if it had begun and ended with that. */
export function applyPeriodGridAt(subscription: BilledSubscription, at: Milliseconds): BilledSubscription {
  const { earlier = [], start_ms, end_ms } = subscription;
  if (earlier.length === 0) return subscription;
  const index = earlier.findIndex(({ until_ms }) => at < until_ms);
  const place = index < 0 ? earlier.length : index;
  const { until_ms = null, ...grid }: Partial<PeriodGrid> & { until_ms?: Milliseconds | null } = earlier[place] ?? {};
  return {
    ...subscription,
    ...grid,
    start_ms: Math.max(start_ms, earlier[place - 1]?.until_ms ?? start_ms),
    end_ms: until_ms === null ? end_ms : Math.min(until_ms, end_ms ?? until_ms),
    earlier: [],
  };
}

/** The parts of a time that lie in one grid each, with the subscription in it. */
export function splitByPeriodGrid(interval: Period, subscription: BilledSubscription): [Period, BilledSubscription][] {
  const cuts = (subscription.earlier ?? []).map(({ until_ms }) => until_ms);
  const bounds = [interval.start, ...cuts.filter((cut) => cut > interval.start && cut < interval.end), interval.end];
  return bounds.slice(1).map((end, index) => {
    const start = bounds[index]!;
    return [{ start, end }, applyPeriodGridAt(subscription, start)];
  });
}

/** Where the grid of an instant gave way to another; null where it goes on. */
export function periodGridEnd(subscription: BilledSubscription, at: Milliseconds): Milliseconds | null {
  return subscription.earlier?.find(({ until_ms }) => at < until_ms)?.until_ms ?? null;
}
