/** Aggregates the raw rows of a usage query into cells. */

import type { Scope } from '../../core/foundation/scope.ts';
import type { SegmentPlan } from '../../core/metering/analytics/segments.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import { EventCells } from '../../core/metering/event-cells.ts';
import type { UsageCell } from '../../core/metering/usage.ts';
import { checkCells, checkGroups, readWithin } from '../concurrency/query-bounds.ts';
import { TimeSlicer } from '../concurrency/time-slicer.ts';
import { type PositionedRawEvent, type RawEvent, type RawEventsQuery, streamRawEvents } from '../events/raw-events.ts';
import type { Stores } from '../foundation/stores.ts';
import type { PartitionProgress } from '../progress/partition-progress.ts';
import { buildEventFilter, chooseEarlierOffsets, chooseKey, isBefore } from './counted-events.ts';
import { loadEventsOutside } from './outside-events.ts';
import { applyPlannedCorrection } from './planned-corrections.ts';
import type { Snapshot } from './snapshot.ts';
import type { MeterUsageQuery } from './usage-query.ts';

export type UsageReadPlan = {
  stores: Stores;
  scope: Scope;
  query: MeterUsageQuery;
  meter: CompiledMeter;
  meter_version: number;
  grid: { timezone: string; billing_anchor: number | null };
  stop: ReadonlyMap<number, bigint> | undefined;
  plan: SegmentPlan;
  snapshot: Snapshot;
  /** Progress of the snapshot, present only if the meter's version was read at the same moment. The usage cache may answer only then. */
  progress: readonly PartitionProgress[] | undefined;
  /** False if no event of the environment was corrected before the snapshot. */
  has_corrections: boolean;
};

/** Greatest number of customers in a statement that concurrent queries share. */
export const BATCHED_CUSTOMERS_MAX = 20;

/** Converts a plan to a query of the raw rows that it reads one by one. */
export function toRawEventsQuery({
  scope,
  query,
  meter,
  plan,
  snapshot,
  stop,
  has_corrections,
}: UsageReadPlan): RawEventsQuery {
  return {
    ...scope,
    event_name: meter.event_name,
    ...(query.external_customer_ids === null ? {} : { external_customer_ids: query.external_customer_ids }),
    ...(query.only?.sources ? { sources: query.only.sources } : {}),
    ranges: plan.raw_ranges,
    has_corrections,
    before: stop ? chooseEarlierOffsets(snapshot.before, stop) : snapshot.before,
  };
}

function createEventCells({ query, meter, plan, grid }: UsageReadPlan): EventCells<RawEvent> {
  return new EventCells<RawEvent>({
    meter,
    plan,
    grid,
    passes: buildEventFilter(query),
    key_of: chooseKey(query),
  });
}

export async function loadRawCells(read_plan: UsageReadPlan, hasFewEvents = false): Promise<UsageCell[]> {
  const events = hasFewEvents || read_plan.query.is_of_many ? await loadFewRawEvents(read_plan) : null;
  const corrected = events && (() => applyPlannedCorrection(events, read_plan, toRawEventsQuery(read_plan)));
  if (corrected) return aggregateEvents(read_plan, corrected, true);
  const raw_query = { ...toRawEventsQuery(read_plan), signal: read_plan.query.bounds?.signal };
  const stream = () => streamRawEvents(read_plan.stores.clickhouse, raw_query);
  return aggregateEvents(read_plan, () => applyPlannedCorrection(stream(), read_plan, raw_query));
}

/** Reads the events that `streamRawEvents` would return, by one statement for all concurrent callers; null if there are too many. */
async function loadFewRawEvents(read_plan: UsageReadPlan): Promise<PositionedRawEvent[] | null> {
  const { external_customer_ids, bounds, only } = read_plan.query;
  if (external_customer_ids === null || external_customer_ids.length > BATCHED_CUSTOMERS_MAX) return null;
  const events = await loadEventsOutside(read_plan.stores.clickhouse, {
    ...read_plan.scope,
    event_name: read_plan.meter.event_name,
    external_customer_ids,
    ranges: read_plan.plan.raw_ranges,
    bounds,
    has_corrections: read_plan.has_corrections,
  });
  const isCounted = isBefore(read_plan);
  return events && events.filter((event) => isCounted(event) && (only?.sources?.includes(event.source) ?? true));
}

/** Aggregates events. `events` is called again if the query is not small. */
export async function aggregateEvents(
  read_plan: UsageReadPlan,
  events: () => AsyncIterable<RawEvent> | Iterable<RawEvent>,
  is_loaded = false,
): Promise<UsageCell[]> {
  const { scope, query, meter } = read_plan;
  const { bounds } = query;
  return readWithin({ tenant_id: scope.tenant_id, bounds, is_loaded }, meter, async (work) => {
    const slicer = new TimeSlicer(bounds?.asker);
    const gathering = createEventCells(read_plan);
    for await (const event of events()) {
      if (!work.maySpend(event.length)) return undefined;
      gathering.add(event);
      if (bounds) checkCells(gathering.size);
      if (bounds && query.is_grouped) checkGroups(gathering.keys);
      if (slicer.isOver()) await slicer.next(bounds?.signal);
    }
    return gathering.all();
  });
}
