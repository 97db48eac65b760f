/** Aggregates raw events into the cells of a usage query: the unaligned edges of a range, and ranges without pre-aggregated rows. */

import { toMs, toUs } from '../foundation/time/instant.ts';
import { type WindowGrid, windowStart } from '../foundation/time/window.ts';
import type { SegmentPlan, UsageSegment } from './analytics/segments.ts';
import { UsageBucket } from './bucket.ts';
import { type CompiledMeter, measure } from './compiled-meter.ts';
import type { MeteredEvent } from './contribution.ts';
import { matches } from './match.ts';
import type { UsageCell } from './usage.ts';

type EventCellQuery<Event extends MeteredEvent> = {
  readonly meter: CompiledMeter;
  readonly plan: SegmentPlan;
  readonly grid: WindowGrid;
  /** Filter in addition to the meter's own filters. */
  readonly passes?: ((event: Event) => boolean) | undefined;
  readonly key_of: (event: Event) => string;
};

/**
 * Aggregates events into cells. Added events must be distinct, in the range, and named like the meter's events. Events that the meter does
 * not use are skipped.
 */
export class EventCells<Event extends MeteredEvent> {
  readonly #cells = new Map<string, UsageCell>();
  readonly #keys = new Set<string>();
  readonly #query: EventCellQuery<Event>;
  readonly #segmentAt: (at: number) => UsageSegment;

  constructor(query: EventCellQuery<Event>) {
    this.#query = query;
    this.#segmentAt = finder(query.plan.segments);
  }

  get size(): number {
    return this.#cells.size;
  }

  get keys(): number {
    return this.#keys.size;
  }

  all(): UsageCell[] {
    return [...this.#cells.values()];
  }

  add(event: Event): void {
    const { meter, plan, grid, passes, key_of } = this.#query;
    if (!matches(meter, event.properties)) return;
    if (passes && !passes(event)) return;
    const contribution = measure(meter, event);
    if (contribution.unusable !== undefined) return;
    const segment_us = this.#segmentAt(event.timestamp_us).start_us;
    const window_us = plan.rows_are_windows ? toUs(windowStart(toMs(event.timestamp_us), meter.bucket_size!, grid)) : 0;
    const { group_key } = contribution;
    const key = key_of(event);
    const place = JSON.stringify([segment_us, window_us, group_key, key]);
    let cell = this.#cells.get(place);
    if (!cell) {
      cell = { key, segment_us, window_us, group_key, bucket: new UsageBucket(), counted_uniques: null };
      this.#cells.set(place, cell);
      this.#keys.add(key);
    }
    meter.aggregation.add(cell.bucket, contribution);
  }
}

/** Events of one customer arrive in time order, so the last segment usually matches. */
function finder(segments: readonly UsageSegment[]): (at: number) => UsageSegment {
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
