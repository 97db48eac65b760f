/** Gathers the cells of a query: merged partials of the pre-aggregated rows, and of the raw rows. */

import { type Microseconds, toUs, US_PER_DAY, US_PER_SECOND } from '../../core/foundation/time/instant.ts';
import {
  planRawBucket,
  planRawOnly,
  type SegmentPlan,
  type SegmentRange,
  useEdgeBuckets,
} from '../../core/metering/analytics/segments.ts';
import { US_BY_ROW_SIZE } from '../../core/metering/bucket-size.ts';
import type { UsageCell } from '../../core/metering/usage.ts';
import { runAsSmall } from '../concurrency/query-bounds.ts';
import type { LogPosition } from '../events/raw-events.ts';
import type { Stores } from '../foundation/stores.ts';
import type { PartitionProgress } from '../progress/partition-progress.ts';
import { loadSharedProgress } from '../progress/slices.ts';
import { canBatch, hasDistinctRows, isCacheable, loadBatchedCells } from './batched-cells.ts';
import {
  type BucketQuery,
  type EventRange,
  type ExtraUniques,
  loadBucketCells,
  NO_CELLS,
  type OutsideEvents,
  planEnd,
  type StoredCells,
} from './bucket-cells.ts';
import { toOpenQueryKey } from './cached-usage.ts';
import { chooseKey, isBefore, isInQuery } from './counted-events.ts';
import { loadEventsOutside } from './outside-events.ts';
import { type EventChange, findTouchingCorrection, listChangedEvents } from './planned-corrections.ts';
import { aggregateEvents, BATCHED_CUSTOMERS_MAX, loadRawCells, type UsageReadPlan } from './raw-cells.ts';
import type { Certainty } from './snapshot.ts';
import { canSubtract, subtractCells, toUsageCell } from './subtract-cells.ts';
import type { ClippedRanges, KeyedEvent, MeterUsageQuery } from './usage-query.ts';

export type CellsRead = {
  readonly cells: readonly UsageCell[];
  readonly raw_ranges: readonly SegmentRange[];
  readonly certainty: Certainty;
  /** Cells from rows alone; they are cached if the progress of the stores did not change during the read. */
  readonly stored?: RowsRead;
  /** Progress of the stores after the rows were read, if raw rows were read later. */
  readonly progress?: readonly PartitionProgress[];
  /** Log positions of all events of `raw_ranges`, if known; only those before the snapshot were used. */
  readonly log_positions?: readonly LogPosition[];
};

type RowsRead = {
  readonly bucket_query: BucketQuery;
  readonly event_range: EventRange | undefined;
  readonly stored: StoredCells;
};
type CurrentRows = RowsRead & { readonly is_cached: boolean };

/** Caches the cells as of the given progress. Null means that the progress changed during the read; the older entry is then discarded. */
export function cacheRead(
  { usage_cache }: Stores,
  progress: readonly PartitionProgress[] | null,
  { bucket_query, event_range, stored }: RowsRead,
): void {
  if (progress) usage_cache?.cache(bucket_query, { event_range, progress, stored });
  else usage_cache?.discard(bucket_query, event_range);
}

/** Loads usage. Customers that count only in a part of the range are read from raw rows; the others are read as usual. */
export async function loadUsageCells(read_plan: UsageReadPlan): Promise<CellsRead> {
  const { query, meter } = read_plan;
  const { clipped } = query;
  if (!clipped?.size) return loadWholeCells(read_plan);
  const others = (query.external_customer_ids ?? []).filter((id) => !clipped.has(id));
  // For distinct values, all customers are read from raw rows: counts of the engine cannot be united with values of raw rows.
  const isApart = others.length > 0 && !meter.aggregation.fills.includes('uniques');
  const [cells, whole] = await Promise.all([
    loadClippedCells(
      isApart ? toClippedPlan(read_plan, clipped) : { ...read_plan, plan: planRawOnly(read_plan.plan, query) },
    ),
    isApart
      ? loadWholeCells({ ...read_plan, query: { ...query, external_customer_ids: others, clipped: undefined } })
      : null,
  ]);
  const { log_positions: _ofOthers, ...read } = whole ?? { cells: [] };
  const raw_ranges: SegmentRange[] = [[query.start_us, query.end_us]];
  return { ...read, cells: [...read.cells, ...cells], raw_ranges, certainty: 'open' };
}

function toClippedPlan(read_plan: UsageReadPlan, clipped: ClippedRanges): UsageReadPlan {
  const times = [...clipped.values()].flat();
  const start_us = Math.min(...times.map(([from]) => from));
  const end_us = Math.max(...times.map(([, to]) => to));
  const query = { ...read_plan.query, external_customer_ids: [...clipped.keys()] };
  return { ...read_plan, query, plan: planRawOnly(read_plan.plan, { start_us, end_us }) };
}

/** Loads cells of customers that count only in a part of the range. A customer that leaves removes its level from a weighted sum. */
async function loadClippedCells(read_plan: UsageReadPlan): Promise<UsageCell[]> {
  const { meter, query, plan } = read_plan;
  if (!meter.aggregation.fills.includes('weighted_sum')) return loadRawCells(read_plan);
  const own = chooseKey(query);
  const getKey = (event: KeyedEvent) => JSON.stringify([event.external_customer_id, own(event)]);
  const cells = await loadRawCells({ ...read_plan, query: { ...query, key_of: getKey } });
  const ends = new Map(plan.segments.map(({ start_us, end_us }) => [start_us, end_us]));
  return cells.map((cell) => {
    const [customer, key] = JSON.parse(cell.key) as [string, string];
    const left_us = Math.max(...(query.clipped?.get(customer) ?? []).map(([, end_us]) => end_us));
    if (left_us > cell.segment_us && left_us < ends.get(cell.segment_us)!) cell.bucket.leave(left_us);
    return { ...cell, key };
  });
}

/** Loads the cells as if one event had not been sent, or as if a planned correction had taken effect. */
async function loadWholeCells(read_plan: UsageReadPlan): Promise<CellsRead> {
  const { without } = read_plan.query;
  if (without) {
    const counted_plan = { ...read_plan, query: { ...read_plan.query, without: undefined } };
    const removed = [without].filter((event) => isInQuery(counted_plan, event));
    return loadChangedCells(read_plan, counted_plan, { removed, added: [] });
  }
  const correction = findTouchingCorrection(read_plan);
  if (correction === null) return loadCountedCells(read_plan);
  const counted_plan = { ...read_plan, stores: { ...read_plan.stores, planned_correction: undefined } };
  return loadChangedCells(read_plan, counted_plan, listChangedEvents(correction, read_plan));
}

/**
 * Loads the cells with some events removed and others added; `counted_plan` is the query without the change. If the fields of the meter add up,
 * the cells of the events are subtracted and added. Otherwise the base buckets of the events are read from raw rows, which are few.
 */
async function loadChangedCells(
  read_plan: UsageReadPlan,
  counted_plan: UsageReadPlan,
  { removed, added }: EventChange,
): Promise<CellsRead> {
  const { query, meter } = read_plan;
  if (removed.length + added.length === 0) return loadCountedCells(counted_plan);
  if (!canSubtract(meter)) {
    const size = US_BY_ROW_SIZE[meter.base_size];
    const plan = [...removed, ...added].reduce(
      (planned, { timestamp_us: at_us }) => planRawBucket(planned, { ...query, at_us, size }),
      read_plan.plan,
    );
    const cells = await loadCellsWithRaw({ ...read_plan, plan }, false);
    return { cells, raw_ranges: plan.raw_ranges, certainty: 'open' };
  }
  const [{ cells, ...read }, taken, given] = await Promise.all([
    loadCountedCells(counted_plan),
    aggregateEvents(counted_plan, () => removed),
    aggregateEvents(counted_plan, () => added),
  ]);
  return { ...read, cells: subtractCells([...cells, ...given], taken) };
}

async function loadCountedCells(read_plan: UsageReadPlan): Promise<CellsRead> {
  const { plan } = read_plan;
  const whole = isWhole(plan) ? await loadStoredWithEdges(read_plan) : null;
  const withRaw = async (hasFewEvents: boolean): Promise<CellsRead> => ({
    cells: await loadCellsWithRaw(read_plan, hasFewEvents),
    raw_ranges: plan.raw_ranges,
    certainty: 'open',
  });
  if (whole === null) return withRaw(false);
  const { stored, is_cached } = whole;
  const rows = is_cached || read_plan.progress === undefined ? {} : { stored: whole };
  if (!stored.outside.start && !stored.outside.end)
    return { cells: stored.cells.map(toUsageCell), raw_ranges: [], certainty: is_cached ? 'certain' : 'open', ...rows };
  const outside = findRangesToSubtract(read_plan, stored.outside);
  if (!outside) return withRaw(hasFewEdgeEvents(stored));
  const left = await subtractOutside(read_plan, whole, outside);
  return { ...left, certainty: is_cached ? 'unless rebuilt' : 'open', ...rows };
}

/** Whether rows may answer the whole range: no edge is unaligned, or edge buckets cover the unaligned edges. */
function isWhole({ edge_ranges, raw_ranges, base_ranges, day_ranges }: SegmentPlan): boolean {
  return edge_ranges.length > 0 || (raw_ranges.length === 0 && base_ranges.length + day_ranges.length > 0);
}

/**
 * Subtracts events that the rows contain and that lie outside the range. If the range ends now, more of these events may have arrived since
 * the rows were read.
 */
async function subtractOutside(
  read_plan: UsageReadPlan,
  { stored, is_cached }: CurrentRows,
  outside: readonly SegmentRange[],
): Promise<Omit<CellsRead, 'certainty'>> {
  const { stores, scope, query, meter, has_corrections } = read_plan;
  const { external_customer_ids, bounds } = query;
  const hasFewEvents = hasFewEdgeEvents(stored) || timeUntilNow(outside, query) <= SHORT_US;
  const hasFewCustomers =
    hasFewEvents && external_customer_ids !== null && external_customer_ids.length <= BATCHED_CUSTOMERS_MAX;
  const [progress, events] = await Promise.all([
    // Cached rows are of the progress of the snapshot.
    is_cached ? undefined : loadSharedProgress(stores.postgres),
    hasFewCustomers
      ? loadEventsOutside(stores.clickhouse, {
          ...scope,
          event_name: meter.event_name,
          external_customer_ids,
          ranges: outside,
          bounds,
          has_corrections,
        })
      : null,
  ]);
  const taken = events
    ? await aggregateEvents(read_plan, () => events.filter(isBefore(read_plan)), true)
    : await loadRawCells({ ...read_plan, plan: { ...read_plan.plan, raw_ranges: outside } });
  const known = events ? { log_positions: events.map(({ log_position }) => log_position) } : {};
  return {
    cells: subtractCells(stored.cells.map(toUsageCell), taken),
    raw_ranges: outside,
    ...(progress && { progress }),
    ...known,
  };
}

/** Limit of the time outside a range that ends now: the events in it are few only if this time is short. */
const SHORT_US = 120 * US_PER_SECOND;
/** Maximum number of counted events at the edges for which the raw events are read by a statement that concurrent queries share. */
const EDGE_EVENTS_MAX = 2_000;

/** Whether few events were counted at the edges. The number is 0 if the statement does not return it. */
function hasFewEdgeEvents({ ends }: StoredCells): boolean {
  return ends.event_count > 0 && ends.event_count <= EDGE_EVENTS_MAX;
}

function timeUntilNow(ranges: readonly SegmentRange[], { now_ms }: MeterUsageQuery): Microseconds {
  const now_us = toUs(now_ms ?? Date.now());
  return ranges.reduce((sum, [start, end]) => sum + Math.max(0, Math.min(end, now_us) - start), 0);
}

/** Reads a whole range from pre-aggregated rows, cached or by one statement. Rows at its edges may include events outside the range. */
async function loadStoredWithEdges(read_plan: UsageReadPlan): Promise<CurrentRows> {
  const { plan, query, stores, progress } = read_plan;
  const bucket_query = { ...toBucketQuery(read_plan), plan: useEdgeBuckets(plan) };
  const event_range: EventRange | undefined = plan.edge_ranges.length > 0 ? [query.start_us, query.end_us] : undefined;
  const cached = progress && stores.usage_cache?.find(bucket_query, event_range, progress);
  if (cached) return { bucket_query, event_range, stored: cached, is_cached: true };
  const wants_later = stores.usage_cache !== undefined && mayBeExtended(read_plan, bucket_query);
  const stored = await loadStoredCells(stores, { ...bucket_query, wants_later }, event_range);
  return { bucket_query, event_range, stored, is_cached: false };
}

/** Whether the cache may extend the answer to a later end. A range that ended long ago will not be extended. */
function mayBeExtended({ progress, query: { now_ms } }: UsageReadPlan, bucket_query: BucketQuery): boolean {
  if (progress === undefined || !isCacheable(bucket_query) || toOpenQueryKey(bucket_query) === null) return false;
  return planEnd(bucket_query.plan) >= toUs(now_ms ?? Date.now()) - US_PER_DAY;
}

/**
 * Lists ranges outside the query whose events must be subtracted from the edge rows; this is possible only for additive fields. For an
 * "until now" query these are the newest events: so few that busy customers cost as little as quiet ones. Null if a field is not additive,
 * or if less time lies inside the range than outside.
 */
function findRangesToSubtract(
  { meter, plan, query }: UsageReadPlan,
  outside_events: OutsideEvents,
): SegmentRange[] | null {
  if (!canSubtract(meter)) return null;
  const { start_us, end_us } = query;
  const ends = plan.edge_ranges.flat();
  const [from, to] = [Math.min(...ends), Math.max(...ends)];
  const outside = [
    ...(outside_events.start && from < start_us ? [[from, start_us] as const] : []),
    ...(outside_events.end && to > end_us ? [[end_us, to] as const] : []),
  ];
  return timeUntilNow(outside, query) <= timeUntilNow(plan.raw_ranges, query) ? outside : null;
}

async function loadCellsWithRaw(read_plan: UsageReadPlan, hasFewEvents: boolean): Promise<UsageCell[]> {
  const { meter, plan } = read_plan;
  const fromRaw = plan.raw_ranges.length === 0 ? [] : await loadRawCells(read_plan, hasFewEvents);
  const countsUniques = meter.aggregation.fills.includes('uniques');
  const usesBuckets = plan.base_ranges.length + plan.day_ranges.length > 0;
  const unite = countsUniques && usesBuckets;
  const bucket_query = { ...toBucketQuery(read_plan), extra_uniques: unite ? fromRaw.map(toExtraUniques) : [] };
  const stored = usesBuckets ? await loadStoredCells(read_plan.stores, bucket_query) : { cells: [] };
  const cells = stored.cells.map(toUsageCell);
  // If the engine united the distinct values, the raw cells still contribute their event counts.
  return unite ? [...cells, ...fromRaw.map((cell) => ({ ...cell, counted_uniques: 0 }))] : [...cells, ...fromRaw];
}

/** Loads cells through the shared batch if possible, otherwise by a statement of its own. */
async function loadStoredCells(
  { clickhouse }: Stores,
  bucket_query: BucketQuery,
  event_range?: EventRange,
): Promise<StoredCells> {
  if (canBatch(bucket_query)) return loadBatchedCells(clickhouse, bucket_query, event_range);
  if (!(await hasDistinctRows(clickhouse, bucket_query))) return NO_CELLS;
  return runAsSmall(bucket_query, () => loadBucketCells(clickhouse, bucket_query, event_range));
}

function toBucketQuery({ scope, meter, meter_version, query, plan }: UsageReadPlan): BucketQuery {
  const { external_customer_ids, by_customer = false, running_values = false, bounds } = query;
  const bucket_query = { ...scope, meter, meter_version, external_customer_ids, by_customer, plan, bounds };
  const running_uniques = running_values && query.window_size !== undefined && meter.bucket_size === undefined;
  return { ...bucket_query, extra_uniques: [], running_uniques };
}

function toExtraUniques(cell: UsageCell): ExtraUniques {
  return {
    segment_us: cell.segment_us,
    window_us: cell.window_us,
    group_key: cell.group_key,
    customer: cell.key,
    values: cell.bucket.uniques,
  };
}
