/**
 * From buckets to the number of a range. "Usage, preview, real-time balance, threshold, analytics and invoice come from the
 * same aggregate" (decisions §16): the merged rows of the store and the raw events of ragged ends both end here.
 * "Periods and windows are half-open [start, end)" (decisions §14).
 */
import { Decimal, sumOf } from '../decimal.ts';
import { UsageBucket } from './bucket.ts';
import { baseSizeOf, rowStart } from './bucket-size.ts';
import { type CompiledMeter, measure } from './compiled-meter.ts';
import type { Contribution, MeteredEvent } from './contribution.ts';
import { matches } from './match.ts';

/** A partial aggregate, and the meter's own window and group that it belongs to. Several may share them. */
export type UsageCell = {
  /** The start of the bucket_size window; not looked at for a meter without bucket_size. */
  readonly window_start_us: number;
  readonly group_key: string;
  readonly bucket: UsageBucket;
};

export type UsageRange = { readonly start_us: number; readonly end_us: number };

export type WindowUsage = { readonly start_us: number; readonly value: Decimal; readonly event_count: number };

export type Usage = {
  readonly value: Decimal;
  readonly event_count: number;
  /** The windows of a meter with bucket_size that had events, in order of time; empty for any other meter. */
  readonly windows: readonly WindowUsage[];
};

/** The usage of a range whose events are exactly those of the cells. */
export function usageOf(meter: CompiledMeter, cells: Iterable<UsageCell>, range: UsageRange): Usage {
  const finishRange = { ...range, multiplier: meter.multiplier };
  if (meter.bucket_size === undefined) {
    const merged = new UsageBucket();
    for (const cell of cells) merged.combine(cell.bucket);
    return { value: meter.aggregation.finish(merged, finishRange), event_count: merged.count, windows: [] };
  }
  const windows = [...mergedByWindow(cells)]
    .map(([start_us, groups]) => ({
      start_us,
      value: sumOf([...groups.values()].map((bucket) => meter.aggregation.finish(bucket, finishRange))),
      event_count: countOf(groups.values()),
    }))
    .sort((a, b) => a.start_us - b.start_us);
  return {
    value: sumOf(windows.map((window) => window.value)),
    event_count: windows.reduce((count, window) => count + window.event_count, 0),
    windows,
  };
}

function mergedByWindow(cells: Iterable<UsageCell>): Map<number, Map<string, UsageBucket>> {
  const windows = new Map<number, Map<string, UsageBucket>>();
  for (const { window_start_us, group_key, bucket } of cells) {
    let groups = windows.get(window_start_us);
    if (groups === undefined) windows.set(window_start_us, (groups = new Map()));
    let merged = groups.get(group_key);
    if (merged === undefined) groups.set(group_key, (merged = new UsageBucket()));
    merged.combine(bucket);
  }
  return windows;
}

function countOf(buckets: Iterable<UsageBucket>): number {
  let count = 0;
  for (const bucket of buckets) count += bucket.count;
  return count;
}

export type UnusableEvent = { readonly event_id: string; readonly reason: string };

export type WindowAggregate = Usage & { readonly unusable: readonly UnusableEvent[] };

export type AggregateRange = UsageRange & {
  /** The start of the bucket_size window of an instant, in the timezone that applies; UTC rows when it is left out. */
  readonly bucketStartOf?: (timestamp_us: number) => number;
};

/**
 * The plain fold over raw events, for ragged ends, group-bys and audits. The events are distinct ones of the meter's event
 * name and of one customer set; those outside the range or refused by the filters do not count.
 */
export function aggregateWindow(
  meter: CompiledMeter,
  events: Iterable<MeteredEvent>,
  range: AggregateRange,
): WindowAggregate {
  const bucketStartOf = range.bucketStartOf ?? utcStartsOf(meter);
  const cells = new Map<number, Map<string, UsageBucket>>();
  const unusable: UnusableEvent[] = [];
  for (const event of events) {
    if (event.timestamp_us < range.start_us || event.timestamp_us >= range.end_us) continue;
    if (!matches(meter, event.properties)) continue;
    const measured = measure(meter, event);
    if (measured.unusable !== undefined) unusable.push({ event_id: event.event_id, reason: measured.unusable });
    else addToCells(cells, meter, { contribution: measured, start_us: bucketStartOf(event.timestamp_us) });
  }
  return { ...usageOf(meter, cellsOf(cells), range), unusable };
}

/** Rows of the base size are aligned to UTC; coarser windows depend on a timezone, which only the caller knows. */
function utcStartsOf(meter: CompiledMeter): (timestamp_us: number) => number {
  if (meter.bucket_size === undefined) return () => 0;
  const size = baseSizeOf(meter.bucket_size);
  if (meter.bucket_size === size || meter.bucket_size === 'DAY') {
    const rowSize = meter.bucket_size;
    return (timestamp_us) => rowStart(timestamp_us, rowSize);
  }
  throw new TypeError(`windows of ${meter.bucket_size} need bucketStartOf`);
}

function addToCells(
  cells: Map<number, Map<string, UsageBucket>>,
  meter: CompiledMeter,
  { contribution, start_us }: { contribution: Contribution; start_us: number },
): void {
  let groups = cells.get(start_us);
  if (groups === undefined) cells.set(start_us, (groups = new Map()));
  let bucket = groups.get(contribution.group_key);
  if (bucket === undefined) groups.set(contribution.group_key, (bucket = new UsageBucket()));
  meter.aggregation.add(bucket, contribution);
}

function* cellsOf(cells: Map<number, Map<string, UsageBucket>>): Iterable<UsageCell> {
  for (const [window_start_us, groups] of cells) {
    for (const [group_key, bucket] of groups) yield { window_start_us, group_key, bucket };
  }
}
