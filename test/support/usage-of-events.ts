/** Computes usage from a list of events with the steps of a query over raw events, without a store. */
import { planSegments, type SegmentPlan } from '../../core/metering/analytics/segments.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import type { MeteredEvent } from '../../core/metering/contribution.ts';
import { EventCells } from '../../core/metering/event-cells.ts';
import {
  computeUsageByKey,
  type UsageByKeyQuery,
  type UsageCell,
  type WindowAnswer,
} from '../../core/metering/usage.ts';

type Range = { readonly start_us: number; readonly end_us: number; readonly timezone?: string };

export function usageOfEvents(meter: CompiledMeter, events: readonly MeteredEvent[], range: Range): WindowAnswer {
  const plan = planOf(meter, range);
  return usageOfCells(meter, eventCells(meter, events, range), { ...range, plan });
}

/** Events outside the plan's half-open ranges do not count, because the store would not return them. */
export function eventCells(meter: CompiledMeter, events: readonly MeteredEvent[], range: Range): UsageCell[] {
  const plan = planOf(meter, range);
  const ranges = [...plan.raw_ranges, ...plan.base_ranges, ...plan.day_ranges];
  const cells = new EventCells({ meter, plan, grid: gridOf(range), key_of: () => '' });
  for (const event of events)
    if (ranges.some(([start, end]) => event.timestamp_us >= start && event.timestamp_us < end)) cells.add(event);
  return cells.all();
}

export function usageOfCells(
  meter: CompiledMeter,
  cells: readonly UsageCell[],
  range: Range & { readonly plan?: SegmentPlan },
): WindowAnswer {
  const { start_us, end_us, plan = planOf(meter, range) } = range;
  const question: UsageByKeyQuery = { meter, start_us, end_us, plan, cells, keys: [''], wants: WANTS };
  return atOnce(computeUsageByKey(question)).totals.get('')!;
}

/** Runs all steps without a pause between them. */
export function atOnce<Result>(steps: Iterator<unknown, Result, undefined>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

const WANTS = { total: true, windows: false, running: false };

function planOf(meter: CompiledMeter, range: Range): SegmentPlan {
  const { start_us, end_us } = range;
  return atOnce(planSegments(meter, { start_us, end_us, grid: gridOf(range) }));
}

function gridOf({ timezone = 'UTC' }: Range) {
  return { timezone };
}
