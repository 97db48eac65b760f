/** Gathers the cells of a query: merged partials of the pre-aggregated rows, and of the raw rows. */

import { FarthingError } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { type Microseconds, toUs, US_PER_DAY, US_PER_SECOND } from '../../core/foundation/time/instant.ts';
import {
  planRawOnly,
  type SegmentPlan,
  type SegmentRange,
  useEdgeBuckets,
} from '../../core/metering/analytics/segments.ts';
import { type BucketField, UsageBucket } from '../../core/metering/bucket.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import { EventCells } from '../../core/metering/event-cells.ts';
import type { PlacedCell } from '../../core/metering/usage.ts';
import { checkCells, checkGroups, readWithin, runAsSmall } from '../concurrency/query-bounds.ts';
import { TimeSlicer } from '../concurrency/time-slicer.ts';
import {
  type LogPlace,
  type PlacedRawEvent,
  type RawEvent,
  type RawEventsQuery,
  streamRawEvents,
} from '../events/raw-events.ts';
import type { Stores } from '../foundation/stores.ts';
import { type SliceState } from '../progress/slice-state.ts';
import { loadSharedProgress } from '../progress/slices.ts';
import {
  type BucketCell,
  type BucketQuery,
  type ExtraUniques,
  type Inside,
  loadBucketCells,
  NO_CELLS,
  type OutsideEvents,
  planEnd,
  type StoredCells,
} from './bucket-cells.ts';
import { canBatch, hasDistinctRows, isCacheable, loadLineCells } from './bucket-lines.ts';
import { toOpenQueryKey } from './cached-usage.ts';
import { loadEventsOutside } from './outside-events.ts';
import type { Certainty, Snapshot } from './snapshot.ts';
import type { ClippedRanges, KeyedEvent, MeterUsageQuery } from './usage-query.ts';

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
  progress: readonly SliceState[] | undefined;
};

export type CellsRead = {
  readonly cells: readonly PlacedCell[];
  readonly raw_ranges: readonly SegmentRange[];
  readonly certainty: Certainty;
  /** Cells from rows alone; they are cached if nothing moved meanwhile. */
  readonly stored?: CachedCellsRead;
  /** Progress of the stores after the rows were read, if raw rows were read later. */
  readonly progress?: readonly SliceState[];
  /** Log positions of all events of `raw_ranges`, if known; only those before the snapshot were used. */
  readonly places?: readonly LogPlace[];
};

type CachedCellsRead = {
  readonly question: BucketQuery;
  readonly inside: Inside | undefined;
  readonly answer: StoredCells;
};

/** Caches the cells as of the given progress. Null: the progress moved during the read, so the older entry is discarded. */
export function cacheRead(
  { usage_memory }: Stores,
  progress: readonly SliceState[] | null,
  { question, inside, answer }: CachedCellsRead,
): void {
  if (progress) usage_memory?.cache(question, { inside, progress, stored: answer });
  else usage_memory?.discard(question, inside);
}

/** Customers that count only in a part of the range are read from raw rows; the others are read as usual. */
export async function loadUsageCells(reading: UsageReadPlan): Promise<CellsRead> {
  const { query, meter } = reading;
  const { clipped } = query;
  if (!clipped?.size) return loadWholeCells(reading);
  const others = (query.external_customer_ids ?? []).filter((id) => !clipped.has(id));
  // Distinct counts of the engine cannot be united with distinct values of raw rows of the same time.
  const isApart = others.length > 0 && !meter.aggregation.fills.includes('uniques');
  const [cells, whole] = await Promise.all([
    clippedCells(isApart ? toClippedReading(reading, clipped) : { ...reading, plan: planRawOnly(reading.plan, query) }),
    isApart
      ? loadWholeCells({ ...reading, query: { ...query, external_customer_ids: others, clipped: undefined } })
      : null,
  ]);
  const { places: _ofOthers, ...read } = whole ?? { cells: [] };
  const raw_ranges: SegmentRange[] = [[query.start_us, query.end_us]];
  return { ...read, cells: [...read.cells, ...cells], raw_ranges, certainty: 'open' };
}

function toClippedReading(reading: UsageReadPlan, clipped: ClippedRanges): UsageReadPlan {
  const times = [...clipped.values()].flat();
  const start_us = Math.min(...times.map(([from]) => from));
  const end_us = Math.max(...times.map(([, to]) => to));
  const query = { ...reading.query, external_customer_ids: [...clipped.keys()] };
  return { ...reading, query, plan: planRawOnly(reading.plan, { start_us, end_us }) };
}

/** A customer that leaves removes its level: a weighted sum drops it at the instant of leaving. */
async function clippedCells(reading: UsageReadPlan): Promise<PlacedCell[]> {
  const { meter, query, plan } = reading;
  if (!meter.aggregation.fills.includes('weighted_sum')) return rawCells(reading);
  const own = chooseKey(query);
  const getKey = (event: KeyedEvent) => JSON.stringify([event.external_customer_id, own(event)]);
  const cells = await rawCells({ ...reading, query: { ...query, key_of: getKey } });
  const ends = new Map(plan.segments.map(({ start_us, end_us }) => [start_us, end_us]));
  return cells.map((cell) => {
    const [customer, key] = JSON.parse(cell.key) as [string, string];
    const left_us = Math.max(...(query.clipped?.get(customer) ?? []).map(([, end_us]) => end_us));
    if (left_us > cell.segment_us && left_us < ends.get(cell.segment_us)!) cell.bucket.leave(left_us);
    return { ...cell, key };
  });
}

async function loadWholeCells(reading: UsageReadPlan): Promise<CellsRead> {
  const { plan } = reading;
  const whole = isWhole(plan) ? await storedWithEdges(reading) : null;
  const withRaw = async (): Promise<CellsRead> => ({
    cells: await cellsWithRaw(reading),
    raw_ranges: plan.raw_ranges,
    certainty: 'open',
  });
  if (whole === null) return withRaw();
  const { answer, is_cached } = whole;
  const stored = is_cached || reading.progress === undefined ? {} : { stored: whole };
  if (!answer.outside.start && !answer.outside.end)
    return { cells: answer.cells.map(placed), raw_ranges: [], certainty: is_cached ? 'certain' : 'open', ...stored };
  const outside = findRangesToSubtract(reading, answer.outside);
  if (!outside) return withRaw();
  const left = await withoutOutside(reading, answer.cells, outside);
  return { ...left, certainty: is_cached ? 'unless rebuilt' : 'open', ...stored };
}

/** Rows may answer the whole range: no edge is unaligned, or edge buckets cover the unaligned edges. */
function isWhole({ edge_ranges, raw_ranges, base_ranges, day_ranges }: SegmentPlan): boolean {
  return edge_ranges.length > 0 || (raw_ranges.length === 0 && base_ranges.length + day_ranges.length > 0);
}

/** Events outside a range that ends now arrive all the time: only those that the rows contain are subtracted. */
async function withoutOutside(
  reading: UsageReadPlan,
  stored: readonly BucketCell[],
  outside: readonly SegmentRange[],
): Promise<Omit<CellsRead, 'certainty'>> {
  const { stores, scope, query, meter } = reading;
  const { external_customer_ids, bounds } = query;
  const isShort = timeUntilNow(outside, query) <= SHORT_US;
  const hasFewCustomers =
    isShort && external_customer_ids !== null && external_customer_ids.length <= BATCHED_CUSTOMERS_MAX;
  const [progress, events] = await Promise.all([
    loadSharedProgress(stores.postgres),
    hasFewCustomers
      ? loadEventsOutside(stores.clickhouse, {
          ...scope,
          event_name: meter.event_name,
          external_customer_ids,
          ranges: outside,
          bounds,
        })
      : null,
  ]);
  const taken = events
    ? await gathered(reading, () => events.filter(isBefore(reading)))
    : await rawCells({ ...reading, plan: { ...reading.plan, raw_ranges: outside } });
  const cells = withoutThem(stored, taken);
  return { cells, raw_ranges: outside, progress, ...(events ? { places: events.map(({ place }) => place) } : {}) };
}

/** Outside a range that ends now are only the newest events; over more time they are no longer few. */
const SHORT_US = 120 * US_PER_SECOND;
const BATCHED_CUSTOMERS_MAX = 20;

function isBefore({ snapshot, stop }: UsageReadPlan): (event: PlacedRawEvent) => boolean {
  const before = stop ? chooseEarlierOffsets(snapshot.before, stop) : snapshot.before;
  return ({ place }) => BigInt(place.offset) < (before.get(place.partition) ?? 0n);
}

function timeUntilNow(ranges: readonly SegmentRange[], { now_ms }: MeterUsageQuery): Microseconds {
  const now_us = toUs(now_ms ?? Date.now());
  return ranges.reduce((sum, [start, end]) => sum + Math.max(0, Math.min(end, now_us) - start), 0);
}

/** Reads a whole range from pre-aggregated rows, cached or by one statement. Rows at its edges may include events outside the range. */
async function storedWithEdges(reading: UsageReadPlan): Promise<CachedCellsRead & { readonly is_cached: boolean }> {
  const { plan, query, stores, progress } = reading;
  const question = { ...toBucketQuery(reading), plan: useEdgeBuckets(plan) };
  const inside: Inside | undefined = plan.edge_ranges.length > 0 ? [query.start_us, query.end_us] : undefined;
  const cached = progress && stores.usage_memory?.find(question, inside, progress);
  if (cached) return { question, inside, answer: cached, is_cached: true };
  const asks_later = stores.usage_memory !== undefined && mayBeExtended(reading, question);
  const answer = await storedCells(stores, { ...question, asks_later }, inside);
  return { question, inside, answer, is_cached: false };
}

/** Whether the cache may extend the answer to a later end. A range that ended long ago will not be extended. */
function mayBeExtended({ progress, query: { now_ms } }: UsageReadPlan, question: BucketQuery): boolean {
  if (progress === undefined || !isCacheable(question) || toOpenQueryKey(question) === null) return false;
  return planEnd(question.plan) >= toUs(now_ms ?? Date.now()) - US_PER_DAY;
}

/**
 * Ranges outside the query whose events must be subtracted from the edge rows; this is possible only for additive fields. For an "until
 * now" query these are the newest events: so few that busy customers cost as little as quiet ones. Null if a field is not additive, or if
 * less time lies inside the range than outside.
 */
function findRangesToSubtract(
  { meter, plan, query }: UsageReadPlan,
  outside_events: OutsideEvents,
): SegmentRange[] | null {
  if (!meter.aggregation.fills.every((field) => ADDITIVE.includes(field))) return null;
  const { start_us, end_us } = query;
  const ends = plan.edge_ranges.flat();
  const [from, to] = [Math.min(...ends), Math.max(...ends)];
  const outside = [
    ...(outside_events.start && from < start_us ? [[from, start_us] as const] : []),
    ...(outside_events.end && to > end_us ? [[end_us, to] as const] : []),
  ];
  return timeUntilNow(outside, query) <= timeUntilNow(plan.raw_ranges, query) ? outside : null;
}

const ADDITIVE: readonly BucketField[] = ['count', 'sum', 'weighted_sum'];

/** A cell without remaining events is dropped. */
function withoutThem(stored: readonly BucketCell[], taken: readonly PlacedCell[]): PlacedCell[] {
  const cells = new Map<string, PlacedCell>();
  const add = (cell: PlacedCell) => {
    const { key, segment_us, window_us, group_key } = cell;
    const place = JSON.stringify([Math.floor(segment_us / US_PER_SECOND), window_us, group_key, key]);
    const known = cells.get(place);
    if (known) known.bucket.combine(cell.bucket);
    // A copy, because the stored bucket may be cached unchanged.
    else cells.set(place, { ...cell, bucket: UsageBucket.of(cell.bucket) });
  };
  for (const cell of stored) add(placed(cell));
  for (const cell of taken) add({ ...cell, bucket: cell.bucket.negative() });
  const left = [...cells.values()];
  if (left.some(({ bucket }) => bucket.count < 0)) throw toMissingRowsError();
  return left.filter(({ bucket }) => bucket.count > 0);
}

function toMissingRowsError(): FarthingError {
  const what = 'the rows hold fewer events than there are beyond the range; the audit tells which';
  return new FarthingError('internal_error', what);
}

async function cellsWithRaw(reading: UsageReadPlan): Promise<PlacedCell[]> {
  const { meter, plan } = reading;
  const fromRaw = plan.raw_ranges.length === 0 ? [] : await rawCells(reading);
  const countsUniques = meter.aggregation.fills.includes('uniques');
  const usesBuckets = plan.base_ranges.length + plan.day_ranges.length > 0;
  const unite = countsUniques && usesBuckets;
  const question = { ...toBucketQuery(reading), extra_uniques: unite ? fromRaw.map(toExtraUniques) : [] };
  const stored = usesBuckets ? await storedCells(reading.stores, question) : { cells: [] };
  const cells = stored.cells.map(placed);
  // If the engine united the distinct values, the raw cells still contribute their event counts.
  return unite ? [...cells, ...fromRaw.map((cell) => ({ ...cell, counted_uniques: 0 }))] : [...cells, ...fromRaw];
}

/** Uses the shared batch if possible, otherwise a statement of its own. */
async function storedCells({ clickhouse }: Stores, question: BucketQuery, inside?: Inside): Promise<StoredCells> {
  if (canBatch(question)) return loadLineCells(clickhouse, question, inside);
  if (!(await hasDistinctRows(clickhouse, question))) return NO_CELLS;
  return runAsSmall(question, () => loadBucketCells(clickhouse, question, inside));
}

function toBucketQuery({ scope, meter, meter_version, query, plan }: UsageReadPlan): BucketQuery {
  const { external_customer_ids, by_customer = false, running_values = false, bounds } = query;
  const question = { ...scope, meter, meter_version, external_customer_ids, by_customer, plan, bounds };
  const running_uniques = running_values && query.window_size !== undefined && meter.bucket_size === undefined;
  return { ...question, extra_uniques: [], running_uniques };
}

function placed({ customer, ...cell }: BucketCell): PlacedCell {
  return { ...cell, key: customer };
}

/** Raw rows that the plan reads one by one. */
export function toRawEventsQuery({ scope, query, meter, plan, snapshot, stop }: UsageReadPlan): RawEventsQuery {
  return {
    ...scope,
    event_name: meter.event_name,
    ...(query.external_customer_ids === null ? {} : { external_customer_ids: query.external_customer_ids }),
    ...(query.only?.sources ? { sources: query.only.sources } : {}),
    ranges: plan.raw_ranges,
    before: stop ? chooseEarlierOffsets(snapshot.before, stop) : snapshot.before,
  };
}

function toExtraUniques(cell: PlacedCell): ExtraUniques {
  return {
    segment_us: cell.segment_us,
    window_us: cell.window_us,
    group_key: cell.group_key,
    customer: cell.key,
    values: cell.bucket.uniques,
  };
}

/** A stopped meter counts nothing after its last barrier. */
function chooseEarlierOffsets(
  before: ReadonlyMap<number, bigint>,
  stop: ReadonlyMap<number, bigint>,
): Map<number, bigint> {
  return new Map(
    [...before].map(([partition, offset]) => {
      const end = stop.get(partition);
      return [partition, end !== undefined && end < offset ? end : offset];
    }),
  );
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

function chooseKey({ key_of, by_customer }: MeterUsageQuery): (event: KeyedEvent) => string {
  return key_of ?? ((event) => (by_customer ? event.external_customer_id : ''));
}

function buildEventFilter({ only, clipped }: MeterUsageQuery): ((event: RawEvent) => boolean) | undefined {
  const passes = only?.passes;
  if (!clipped?.size) return passes && ((event) => passes(event.properties));
  const isThere = ({ external_customer_id, timestamp_us }: RawEvent) =>
    clipped.get(external_customer_id)?.some(([from, to]) => timestamp_us >= from && timestamp_us < to) ?? true;
  return (event) => isThere(event) && (passes === undefined || passes(event.properties));
}

async function rawCells(reading: UsageReadPlan): Promise<PlacedCell[]> {
  const events = reading.query.is_of_many ? await fewRawEvents(reading) : null;
  if (events) return gathered(reading, () => events);
  const wanted = { ...toRawEventsQuery(reading), signal: reading.query.bounds?.signal };
  return gathered(reading, () => streamRawEvents(reading.stores.clickhouse, wanted));
}

/** Reads the events that `streamRawEvents` would return, by one statement for all concurrent callers; null if there are too many. */
async function fewRawEvents(reading: UsageReadPlan): Promise<PlacedRawEvent[] | null> {
  const { external_customer_ids, bounds, only } = reading.query;
  if (external_customer_ids === null || external_customer_ids.length > BATCHED_CUSTOMERS_MAX) return null;
  const events = await loadEventsOutside(reading.stores.clickhouse, {
    ...reading.scope,
    event_name: reading.meter.event_name,
    external_customer_ids,
    ranges: reading.plan.raw_ranges,
    bounds,
  });
  const isCounted = isBefore(reading);
  return events && events.filter((event) => isCounted(event) && (only?.sources?.includes(event.source) ?? true));
}

/** `events` is called again if the query is not small. */
async function gathered(
  reading: UsageReadPlan,
  events: () => AsyncIterable<RawEvent> | Iterable<RawEvent>,
): Promise<PlacedCell[]> {
  const { scope, query, meter } = reading;
  const { bounds } = query;
  return readWithin({ tenant_id: scope.tenant_id, bounds }, meter, async (work) => {
    const slicer = new TimeSlicer(bounds?.asker);
    const gathering = createEventCells(reading);
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
