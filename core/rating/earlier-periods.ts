/**
 * Former period grids of a subscription, from before its periods were re-anchored (docs/rules/subscriptions.md, "Plan changes"). A charge
 * that began in a former grid and was cut uses that grid in every recomputation.
 */
import type { Milliseconds } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';
import type { BilledSubscription, PeriodGrid } from './charges.ts';

/** Returns the subscription limited to the period grid in force at an instant: it begins and ends with that grid. */
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

/** Splits an interval at the changes of the period grid. Each part has the subscription limited to the grid of that part. */
export function splitByPeriodGrid(interval: Period, subscription: BilledSubscription): [Period, BilledSubscription][] {
  const cuts = (subscription.earlier ?? []).map(({ until_ms }) => until_ms);
  const bounds = [interval.start, ...cuts.filter((cut) => cut > interval.start && cut < interval.end), interval.end];
  return bounds.slice(1).map((end, index) => {
    const start = bounds[index]!;
    return [{ start, end }, applyPeriodGridAt(subscription, start)];
  });
}

/** End of the grid that contains the instant; null for the current grid. */
export function periodGridEnd(subscription: BilledSubscription, at: Milliseconds): Milliseconds | null {
  return subscription.earlier?.find(({ until_ms }) => at < until_ms)?.until_ms ?? null;
}
