/** From merged partials to numbers: per key the total of the range, and the windows that were asked for. */
import type { Segment, SegmentPlan } from '../../core/analytics/segments.ts';
import { Decimal, sumOf } from '../../core/decimal.ts';
import { UsageBucket } from '../../core/metering/bucket.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import type { UsageAsked, UsageOfKey, WindowAnswer } from './usage.ts';
import type { PlacedCell } from './usage-cells.ts';

export function answersOf({
  meter,
  asked,
  plan,
  cells,
}: {
  meter: CompiledMeter;
  asked: UsageAsked;
  plan: SegmentPlan;
  cells: readonly PlacedCell[];
}): UsageOfKey[] {
  const bySegment = new Map(plan.segments.map((segment) => [Math.floor(segment.start_us / 1_000_000), segment]));
  const placed = cells.map((cell) => {
    const segment = bySegment.get(Math.floor(cell.segment_us / 1_000_000))!;
    return { ...cell, asked_us: segment.asked_us, own_us: plan.rows_are_windows ? cell.window_us : segment.own_us };
  });
  const byKey = grouped(placed, (cell) => cell.key);
  if (byKey.size === 0 && !asked.by_customer && !asked.key_of) byKey.set('', []);
  const ranges = asked.window_size === undefined ? new Map<number, Range>() : windowRanges(plan.segments);
  const whole = { start_us: asked.start_us, end_us: asked.end_us, window_us: asked.start_us };
  return [...byKey].map(([key, some]) => {
    const windows = asked.window_size === undefined ? [] : [...grouped(some, (cell) => cell.asked_us)];
    return {
      key,
      total: answerOf(meter, some, whole),
      windows: windows
        .sort(([a], [b]) => a - b)
        .map(([window_us, inside]) => answerOf(meter, inside, ranges.get(window_us)!)),
    };
  });
}

type OwnedCell = PlacedCell & { readonly asked_us: number; readonly own_us: number };
type Range = { readonly start_us: number; readonly end_us: number; readonly window_us: number };

/** The total of a range is computed over all of it and never added up from windows: an average of averages is none. */
function answerOf(meter: CompiledMeter, cells: readonly OwnedCell[], range: Range): WindowAnswer {
  const event_count = cells.reduce((count, cell) => count + cell.bucket.count, 0);
  const finish = (some: readonly OwnedCell[]) => valueOf(meter, some, range);
  if (meter.bucket_size === undefined) return { ...range, value: finish(cells), event_count, buckets: null };
  const buckets = [...grouped(cells, (cell) => cell.own_us)]
    .sort(([a], [b]) => a - b)
    .map(([, inside]) => [...grouped(inside, (cell) => cell.group_key).values()].map(finish));
  return { ...range, value: sumOf(buckets.flat()), event_count, buckets };
}

function valueOf(meter: CompiledMeter, cells: readonly OwnedCell[], range: Range): Decimal {
  if (meter.aggregation.fills.includes('uniques') && cells.some((cell) => cell.unique_count >= 0)) {
    return uniquesOf(cells);
  }
  const merged = new UsageBucket();
  for (const cell of cells) merged.combine(cell.bucket);
  return meter.aggregation.finish(merged, { ...range, multiplier: meter.multiplier });
}

function uniquesOf(cells: readonly OwnedCell[]): Decimal {
  const counted = cells.filter((cell) => cell.unique_count > 0);
  // Over several segments this is no total; askUsage asks for that by itself.
  return new Decimal(counted.length > 1 ? Number.NaN : (counted[0]?.unique_count ?? 0));
}

/** By the start of each asked window: the part of it that lies in the range. Segments come in order of time. */
function windowRanges(segments: readonly Segment[]): Map<number, Range> {
  const ranges = new Map<number, Range>();
  for (const { asked_us, start_us, end_us } of segments) {
    const known = ranges.get(asked_us);
    ranges.set(asked_us, { start_us: known?.start_us ?? start_us, end_us, window_us: asked_us });
  }
  return ranges;
}

function grouped<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
