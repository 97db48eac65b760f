/** Gathers what a question is answered from: merged partials of the pre-aggregated rows, and of the raw rows beside them. */
import type { Segment, SegmentPlan } from '../../core/analytics/segments.ts';
import { UsageBucket } from '../../core/metering/bucket.ts';
import { type CompiledMeter, measure } from '../../core/metering/compiled-meter.ts';
import { matches } from '../../core/metering/match.ts';
import type { Scope } from '../../core/scope.ts';
import { windowStart } from '../../core/time/window.ts';
import { type RawEventsWanted, rawEvents } from '../events/raw-events.ts';
import type { Stores } from '../stores.ts';
import { bucketCells, type Cell, type ExtraUniques } from './bucket-cells.ts';
import type { Snapshot } from './snapshot.ts';
import type { UsageAsked } from './usage.ts';

export type Reading = {
  stores: Stores;
  scope: Scope;
  asked: UsageAsked;
  meter: CompiledMeter;
  meter_version: number;
  grid: { timezone: string; billing_anchor: number | null };
  stop: ReadonlyMap<number, bigint> | undefined;
  plan: SegmentPlan;
  snapshot: Snapshot;
};

/** Merged partials by place; `key` is the customer, the asked key, or ''. */
export type PlacedCell = Omit<Cell, 'customer'> & { readonly key: string };

export async function cellsOf(reading: Reading): Promise<PlacedCell[]> {
  const { meter, asked, plan, scope } = reading;
  const fromRaw = plan.raw_ranges.length === 0 ? [] : await rawCells(reading);
  const countsUniques = meter.aggregation.fills.includes('uniques');
  const usesBuckets = plan.base_ranges.length + plan.day_ranges.length > 0;
  const unite = countsUniques && usesBuckets;
  const stored = usesBuckets
    ? await bucketCells(reading.stores.clickhouse, {
        ...scope,
        meter,
        meter_version: reading.meter_version,
        external_customer_ids: asked.external_customer_ids,
        by_customer: asked.by_customer ?? false,
        plan,
        extra_uniques: unite ? fromRaw.map(extraOf) : [],
      })
    : [];
  const placed = stored.map(({ customer, ...cell }) => ({ ...cell, key: customer }));
  // Where the engine has united the distinct values, the raw cells still carry their count of events.
  return unite ? [...placed, ...fromRaw.map((cell) => ({ ...cell, unique_count: 0 }))] : [...placed, ...fromRaw];
}

/** The raw rows that the plan leaves to be read one by one. */
export function rawWanted({ scope, asked, meter, plan, snapshot, stop }: Reading): RawEventsWanted {
  return {
    ...scope,
    event_name: meter.event_name,
    ...(asked.external_customer_ids === null ? {} : { external_customer_ids: asked.external_customer_ids }),
    ...(asked.only?.sources ? { sources: asked.only.sources } : {}),
    ranges: plan.raw_ranges,
    before: stop ? earlierOf(snapshot.before, stop) : snapshot.before,
  };
}

function extraOf(cell: PlacedCell): ExtraUniques {
  return {
    segment_us: cell.segment_us,
    window_us: cell.window_us,
    group_key: cell.group_key,
    customer: cell.key,
    values: cell.bucket.uniques,
  };
}

/** A stopped meter counts nothing behind its last barrier. */
function earlierOf(before: ReadonlyMap<number, bigint>, stop: ReadonlyMap<number, bigint>): Map<number, bigint> {
  return new Map(
    [...before].map(([partition, offset]) => {
      const end = stop.get(partition);
      return [partition, end !== undefined && end < offset ? end : offset];
    }),
  );
}

async function rawCells(reading: Reading): Promise<PlacedCell[]> {
  const { meter, asked, plan, grid } = reading;
  const cells = new Map<string, PlacedCell>();
  const segmentAt = finder(plan.segments);
  for await (const event of rawEvents(reading.stores.clickhouse, rawWanted(reading))) {
    if (!matches(meter, event.properties)) continue;
    if (asked.only?.passes && !asked.only.passes(event.properties)) continue;
    const contribution = measure(meter, event);
    if (contribution.unusable !== undefined) continue;
    const segment = segmentAt(event.timestamp_us);
    const window_us = plan.rows_are_windows
      ? windowStart(Math.floor(event.timestamp_us / 1000), meter.bucket_size!, grid) * 1000
      : 0;
    const key = asked.key_of ? asked.key_of(event) : asked.by_customer ? event.external_customer_id : '';
    const place = JSON.stringify([segment.start_us, window_us, contribution.group_key, key]);
    let cell = cells.get(place);
    if (!cell) {
      const at = { segment_us: segment.start_us, window_us, group_key: contribution.group_key, key };
      cell = { ...at, bucket: new UsageBucket(), unique_count: -1 };
      cells.set(place, cell);
    }
    meter.aggregation.add(cell.bucket, contribution);
  }
  return [...cells.values()];
}

/** Events come in order of time within a customer, so the last segment is mostly the right one. */
function finder(segments: readonly Segment[]): (at: number) => Segment {
  let last = segments[0]!;
  return (at) => {
    if (at >= last.start_us && at < last.end_us) return last;
    let low = 0;
    let high = segments.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (segments[middle]!.start_us <= at) low = middle;
      else high = middle - 1;
    }
    last = segments[low]!;
    return last;
  };
}
