/**
 * Batches queries for the rows of individual customers: the meters of a subscription, the lines of an invoice and concurrent requests share
 * one statement, whatever their ranges. A statement costs the engine more than the rows that it reads.
 *
 * The starts and ends of all ranges cut time into intervals, and the statement returns one row per interval. A query merges the intervals
 * inside its own ranges: sums, minima and maxima of intervals combine to those of the range. The store returns only counts of distinct
 * values, which cannot be combined. Such queries run one by one, after one batched statement has found which of them have rows.
 */
import { TupleParam } from '@clickhouse/client';
import { type Microseconds, US_PER_SECOND } from '../../core/foundation/time/instant.ts';
import { isInRanges, type SegmentPlan } from '../../core/metering/analytics/segments.ts';
import type { BucketField } from '../../core/metering/bucket.ts';
import { US_BY_ROW_SIZE } from '../../core/metering/bucket-size.ts';
import { type ClickHouseClient, SMALL_ANSWER, streamRows, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { KeyedBatchLoader } from '../concurrency/batch-loader.ts';
import { checkCells, type QueryBounds, runAsSmall } from '../concurrency/query-bounds.ts';
import { mapYielding, TimeSlicer } from '../concurrency/time-slicer.ts';
import {
  BUCKET_COLUMNS,
  type BucketCell,
  type BucketQuery,
  buildRangesCondition,
  combineEnds,
  type EventEnds,
  type EventRange,
  findOutside,
  NO_CELLS,
  NO_ENDS,
  planEnd,
  type StoredCells,
  toBucketCell,
} from './bucket-cells.ts';

type BatchedBucketQuery = { readonly query: BucketQuery; readonly event_range: EventRange | undefined };

/** Limits of a batched query. A query with more customers or windows gets its own statement; a month of hourly windows can be batched. */
const CUSTOMERS_MAX = 10;
const WINDOWS_MAX = 750;
/** Maximum number of segments of a cached query. */
const CACHED_SEGMENTS_MAX = 50;
const QUERIES_MAX = 100;
/** Maximum length of all parameters of a statement; a server accepts 128 KiB for each. */
const PARAMETERS_LENGTH_MAX = 100_000;

const CELL_BATCHES = new KeyedBatchLoader<ClickHouseClient, BatchedBucketQuery, StoredCells>(loadCellBatch, {
  batchMax: QUERIES_MAX,
  lengthMax: PARAMETERS_LENGTH_MAX,
  measureLength: ({ query }) => parametersLength(query),
});

/**
 * Returns the length of the statement's parameters `cuts` (seconds since 1970 and a comma each) and `series` (ids with quotation marks,
 * brackets and the version).
 */
function parametersLength({ meter, external_customer_ids, plan }: BucketQuery): number {
  const { segments, base_ranges, day_ranges, edge_ranges } = plan;
  const cuts = segments.length + 2 * (base_ranges.length + day_ranges.length + edge_ranges.length);
  const series = (external_customer_ids ?? []).map((customer) => meter.id.length + customer.length + SERIES_AROUND);
  return cuts * CUT_LENGTH + series.reduce((sum, length) => sum + length, 0);
}
const CUT_LENGTH = 12;
const SERIES_AROUND = 20;

export function isCacheable(query: BucketQuery): boolean {
  const { plan, meter, bounds } = query;
  if (bounds && (plan.rows_are_windows || meter.group_by !== undefined)) return false;
  return canBatch(query) && plan.segments.length <= CACHED_SEGMENTS_MAX;
}

export function canBatch(query: BucketQuery): boolean {
  return isSmallQuery(query) && !countsDistinct(query);
}

function countsDistinct({ meter }: BucketQuery): boolean {
  return meter.aggregation.fills.includes('uniques');
}

function isSmallQuery({
  external_customer_ids,
  by_customer,
  plan,
  extra_uniques,
  meter,
  bounds,
}: BucketQuery): boolean {
  // A bounded query with groups or windows of the meter's own may return any number of rows. It is not batched, so that `loadBucketCells`
  // checks the number of cells as they arrive.
  if (bounds && (meter.group_by !== undefined || (plan.rows_are_windows && rowsMax(meter, plan) > WINDOWS_MAX)))
    return false;
  if (external_customer_ids === null || external_customer_ids.length > CUSTOMERS_MAX) return false;
  if (plan.segments.length > WINDOWS_MAX || extra_uniques.length > 0) return false;
  return by_customer || external_customer_ids.length === 1;
}

function rowsMax({ base_size }: BucketQuery['meter'], { base_ranges }: SegmentPlan): number {
  return base_ranges.reduce((sum, [start, end]) => sum + (end - start) / US_BY_ROW_SIZE[base_size], 0);
}

const ANY = new KeyedBatchLoader<ClickHouseClient, BucketQuery, boolean>(checkForRows, {
  batchMax: QUERIES_MAX,
  lengthMax: PARAMETERS_LENGTH_MAX,
  measureLength: parametersLength,
});

/**
 * Whether a query for distinct values may have rows. Most of the many lines of a customer have none and need no statement. A query that is
 * alone in its batch returns true without a check.
 */
export async function hasDistinctRows(clickhouse: ClickHouseClient, query: BucketQuery): Promise<boolean> {
  const { plan, bounds } = query;
  if (!countsDistinct(query) || !isSmallQuery(query) || plan.base_ranges.length + plan.day_ranges.length === 0)
    return true;
  const found = await ANY.load(clickhouse, query, batchKey(query));
  bounds?.signal.throwIfAborted();
  return found;
}

async function checkForRows(clickhouse: ClickHouseClient, bucket_queries: readonly BucketQuery[]): Promise<boolean[]> {
  if (bucket_queries.length === 1) return [true];
  const { tenant_id, bounds } = bucket_queries[0]!;
  const queries = bucket_queries.map((query) => ({ query, event_range: undefined }));
  const owner = { tenant_id, bounds: buildBatchBounds(bounds) };
  const rows = await runAsSmall(owner, () => readRows(clickhouse, queries, ['count']));
  return mapYielding(bounds?.asker, queries, (one) => selectCells(one, ['count'], rows).cells.length > 0);
}

/** Returns the cells that `loadBucketCells` would return, by a statement that concurrent queries share. */
export async function loadBatchedCells(
  clickhouse: ClickHouseClient,
  query: BucketQuery,
  event_range?: EventRange,
): Promise<StoredCells> {
  const { plan, bounds } = query;
  if (plan.base_ranges.length + plan.day_ranges.length === 0) return NO_CELLS;
  const stored = await CELL_BATCHES.load(clickhouse, { query, event_range }, batchKey(query));
  bounds?.signal.throwIfAborted();
  if (bounds) checkCells(stored.cells.length);
  return stored;
}

/** Returns a key. Queries with one key share their columns; they differ only in meters, customers and times. */
function batchKey({ tenant_id, environment_id, meter, plan, bounds }: BucketQuery): string {
  const columns = [meter.group_by !== undefined, plan.rows_are_windows, meter.aggregation.fills.includes('latest')];
  return JSON.stringify([tenant_id, environment_id, bounds?.asker ?? null, ...columns]);
}

/** Row of the batched statement: the leading columns, then all bucket fields that any query of the batch needs. */
type BatchRow = [
  meter_id: string,
  meter_version: number,
  customer: string,
  group_key: string,
  size: string,
  interval_s: string,
  first_us: string,
  last_us: string,
  ...held: unknown[],
];
const LEADING_COLUMNS = 8;

async function loadCellBatch(
  clickhouse: ClickHouseClient,
  queries: readonly BatchedBucketQuery[],
): Promise<StoredCells[]> {
  const fields = (Object.keys(BUCKET_COLUMNS) as BucketField[]).filter((field) =>
    queries.some(({ query }) => query.meter.aggregation.fills.includes(field)),
  );
  const { tenant_id, bounds } = queries[0]!.query;
  const owner = { tenant_id, bounds: buildBatchBounds(bounds) };
  const rows = await runAsSmall(owner, () => readRows(clickhouse, queries, fields));
  return mapYielding(bounds?.asker, queries, (one) => selectCells(one, fields, rows));
}

/** Builds the bounds of a batch, with a signal of its own: a caller that disconnects does not cancel the statement of the other callers. */
function buildBatchBounds(bounds: QueryBounds | undefined): QueryBounds | undefined {
  return bounds && { asker: bounds.asker, signal: new AbortController().signal, spent: { work: 0 } };
}

async function readRows(
  clickhouse: ClickHouseClient,
  queries: readonly BatchedBucketQuery[],
  fields: readonly BucketField[],
): Promise<Map<string, BatchRow[]>> {
  const found = new Map<string, BatchRow[]>();
  const slicer = new TimeSlicer(queries[0]!.query.bounds?.asker);
  try {
    const rows = streamRows<BatchRow>(clickhouse, {
      query: buildBatchStatement(queries, fields),
      query_params: buildBatchParams(queries),
      settings: { output_format_json_quote_64bit_integers: 1, ...SMALL_ANSWER },
    });
    for await (const some of rows) {
      for (const row of some) {
        const key = seriesKey(row[0], row[1], row[2]);
        const known = found.get(key);
        if (known) known.push(row);
        else found.set(key, [row]);
        if (slicer.isOver()) await slicer.next();
      }
    }
  } catch (error) {
    throw toClickHouseFailure('usage buckets', error);
  }
  return found;
}

function seriesKey(meter_id: string, meter_version: number, customer: string): string {
  return `${meter_id}/${meter_version}/${customer}`;
}

function buildBatchStatement(queries: readonly BatchedBucketQuery[], fields: readonly BucketField[]): string {
  const { plan, meter } = queries[0]!.query;
  const start = 'toInt64(toUnixTimestamp64Second(bucket_start))';
  const series = ['meter_id', 'meter_version', 'external_customer_id'];
  const grouped = meter.group_by === undefined ? [] : ['group_key'];
  const interval = plan.rows_are_windows ? start : `roundDown(${start}, {cuts:Array(Int64)})`;
  const ends = queries.some(({ event_range }) => event_range !== undefined)
    ? ['min(first_us)', 'max(last_us)']
    : ['0', '0'];
  const merged = fields.map((field) => BUCKET_COLUMNS[field].merged);
  const group_key = grouped[0] ?? "''";
  return `select ${[...series, group_key, 'size', `${interval} as interval_start`, ...ends, ...merged].join(', ')} from usage_buckets
    where tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and meter_id in {meter_ids:Array(String)}
      and (meter_id, meter_version, external_customer_id) in {series:Array(Tuple(String, UInt32, String))}
      and ${buildRangesCondition(queries.map(({ query }) => query))}
    group by ${[...series, ...grouped, 'size', 'interval_start'].join(', ')}`;
}

function buildBatchParams(queries: readonly BatchedBucketQuery[]): Record<string, unknown> {
  const { tenant_id, environment_id, plan } = queries[0]!.query;
  const series = new Map<string, TupleParam>();
  for (const { query } of queries) {
    const { meter, meter_version, external_customer_ids } = query;
    for (const customer of external_customer_ids!)
      series.set(seriesKey(meter.id, meter_version, customer), new TupleParam([meter.id, meter_version, customer]));
  }
  const meter_ids = [...new Set(queries.map(({ query }) => query.meter.id))];
  const cuts = plan.rows_are_windows ? {} : { cuts: computeCuts(queries.map(({ query }) => query.plan)) };
  return { tenant_id, environment_id, meter_ids, series: [...series.values()], ...cuts };
}

/** Returns all range starts and ends in seconds, because rows begin at whole seconds. A row belongs to the last one up to its start. */
function computeCuts(plans: readonly SegmentPlan[]): number[] {
  const instants = plans.flatMap(({ segments, base_ranges, day_ranges, edge_ranges }) => [
    ...segments.map(({ start_us }) => start_us),
    ...[...base_ranges, ...day_ranges, ...edge_ranges].flat(),
  ]);
  return [...new Set(instants.map((at) => Math.floor(at / US_PER_SECOND)))].toSorted((a, b) => a - b);
}

function selectCells(
  { query, event_range }: BatchedBucketQuery,
  fields: readonly BucketField[],
  rows: ReadonlyMap<string, BatchRow[]>,
): StoredCells {
  const { meter, meter_version, by_customer, plan } = query;
  const cells: BucketCell[] = [];
  let ends = NO_ENDS;
  let has_later = !query.wants_later;
  const end_us = query.wants_later ? planEnd(plan) : Number.POSITIVE_INFINITY;
  for (const customer of new Set(query.external_customer_ids)) {
    for (const row of rows.get(seriesKey(meter.id, meter_version, customer)) ?? []) {
      if (row[SIZE] === meter.base_size && toStart(row) >= end_us) has_later = true;
      if (!isSelected(query, row)) continue;
      if (event_range && isEdge(query, row)) ends = combineEnds(ends, toEnds(fields, row));
      const window_s = plan.rows_are_windows ? row[INTERVAL] : '0';
      const place = [findSegment(plan, Number(row[INTERVAL])), window_s, row[3], by_customer ? customer : ''] as const;
      cells.push(toBucketCell(fields, [...place, ...row.slice(LEADING_COLUMNS)]));
    }
  }
  return { cells, outside: findOutside(ends, event_range ?? ALWAYS), ends, has_later };
}

const ALWAYS: EventRange = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];

const SIZE = 4;
const INTERVAL = 5;

function isSelected({ meter, plan }: BucketQuery, row: BatchRow): boolean {
  const at = toStart(row);
  return (
    (row[SIZE] === meter.base_size && isInRanges(plan.base_ranges, at)) ||
    (row[SIZE] === 'DAY' && isInRanges(plan.day_ranges, at))
  );
}

function isEdge({ meter, plan }: BucketQuery, row: BatchRow): boolean {
  return row[SIZE] === meter.base_size && isInRanges(plan.edge_ranges, toStart(row));
}

function toEnds(fields: readonly BucketField[], row: BatchRow): EventEnds {
  const event_count = Number(row[LEADING_COLUMNS + fields.indexOf('count')]);
  return { first_us: Number(row[6]), last_us: Number(row[7]), event_count };
}

function toStart(row: BatchRow): Microseconds {
  return Number(row[INTERVAL]) * US_PER_SECOND;
}

function findSegment({ segments }: SegmentPlan, interval_s: number): string {
  return String(Math.floor((segments[findSegmentIndex(segments, interval_s)]?.start_us ?? 0) / US_PER_SECOND));
}

/**
 * Finds the segment of a row by binary search: a month of hours has about 750 segments. The first row of an unaligned range begins before
 * the first segment and belongs to it.
 */
export function findSegmentIndex(segments: SegmentPlan['segments'], start_s: number): number {
  let [first, behind] = [0, segments.length];
  while (behind - first > 1) {
    const middle = (first + behind) >> 1;
    if (Math.floor(segments[middle]!.start_us / US_PER_SECOND) <= start_s) first = middle;
    else behind = middle;
  }
  return first;
}
