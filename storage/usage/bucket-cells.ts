/**
 * Reads the pre-aggregated rows of a query, merged by the engine: one row per segment and group (and customer, if requested). The statement
 * reads only the columns that the meter's aggregation fills. It does not group by keys that are constant in the query: for one month of a
 * customer, such overhead of the statement costs more than the rows.
 */

import type { Scope } from '../../core/foundation/scope.ts';
import { LAST_INSTANT_US, type Microseconds, US_PER_SECOND } from '../../core/foundation/time/instant.ts';
import { mergeRanges, type SegmentPlan, type SegmentRange } from '../../core/metering/analytics/segments.ts';
import { type BucketField, type BucketFields, UsageBucket } from '../../core/metering/bucket.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import type { UsageCell } from '../../core/metering/usage.ts';
import { type ClickHouseClient, SMALL_ANSWER, streamRows, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { checkCells, type QueryBounds } from '../concurrency/query-bounds.ts';
import { TimeSlicer } from '../concurrency/time-slicer.ts';
import { NO_LATEST } from '../events/tables.ts';
import { parseLatest, parseScaled, parseScaledOrNull } from './stored-values.ts';

export type BucketQuery = Scope & {
  readonly meter: CompiledMeter;
  readonly meter_version: number;
  /** Null: all customers. */
  readonly external_customer_ids: readonly string[] | null;
  readonly by_customer: boolean;
  readonly plan: SegmentPlan;
  /** Distinct values found in raw rows, to be united with the stored sets. */
  readonly extra_uniques: readonly ExtraUniques[];
  /** If true, distinct values are also counted cumulatively, over all segments up to each one. */
  readonly running_uniques?: boolean;
  readonly bounds?: QueryBounds | undefined;
  /** Whether to report if base rows exist after the last range. Only `loadBatchedCells` supports this. */
  readonly wants_later?: boolean;
};

/** Half-open range of the query in microseconds. Rows of `edge_ranges` may contain events outside it (`OutsideEvents`). */
export type EventRange = SegmentRange;

export type ExtraUniques = {
  segment_us: Microseconds;
  window_us: Microseconds;
  group_key: string;
  customer: string;
  values: readonly string[];
};

/** Partial aggregate of a segment and group, merged from the rows of one customer or of all requested customers. */
export type BucketCell = Omit<UsageCell, 'key'> & { readonly customer: string };

/** Position of the row, then the fields of the aggregation in their order. */
type CellRow = [segment_s: string, window_s: string, group_key: string, customer: string, ...held: unknown[]];

/** For a query with `event_range`: the ends at which an edge row has events outside the range, or at which its event times are unknown. */
export type OutsideEvents = { start: boolean; end: boolean };

/** Times of the first and the last event of the edge rows, and the number of their events. */
export type EventEnds = {
  readonly first_us: Microseconds;
  readonly last_us: Microseconds;
  readonly event_count: number;
};

export type StoredCells = {
  readonly cells: BucketCell[];
  readonly outside: OutsideEvents;
  readonly ends: EventEnds;
  /** True if base rows exist after the last range, or if the query did not request this check. */
  readonly has_later: boolean;
};

export const NO_ENDS: EventEnds = {
  first_us: Number.POSITIVE_INFINITY,
  last_us: Number.NEGATIVE_INFINITY,
  event_count: 0,
};

export function combineEnds(a: EventEnds, b: EventEnds): EventEnds {
  return {
    first_us: Math.min(a.first_us, b.first_us),
    last_us: Math.max(a.last_us, b.last_us),
    event_count: a.event_count + b.event_count,
  };
}
export const NO_CELLS: StoredCells = {
  cells: [],
  outside: { start: false, end: false },
  ends: NO_ENDS,
  has_later: true,
};

export async function loadBucketCells(
  clickhouse: ClickHouseClient,
  query: BucketQuery,
  event_range?: EventRange,
): Promise<StoredCells> {
  const { plan } = query;
  if (plan.base_ranges.length + plan.day_ranges.length === 0 && query.extra_uniques.length === 0) return NO_CELLS;
  const { sql, params } = buildBucketStatement(query, event_range);
  try {
    const rows = streamRows<CellRow>(clickhouse, {
      query: sql,
      query_params: params,
      settings: { output_format_json_quote_64bit_integers: 1, ...(isSmall(query) ? SMALL_ANSWER : {}) },
      ...(query.bounds ? { abort_signal: query.bounds.signal } : {}),
    });
    return await mergeCells(query, rows, event_range !== undefined);
  } catch (error) {
    throw toClickHouseFailure('usage buckets', error);
  }
}

/** Merges cells row by row, because a very large answer must not delay other work. */
async function mergeCells(
  { meter, bounds, running_uniques }: BucketQuery,
  rows: AsyncIterable<CellRow[]>,
  hasRange: boolean,
): Promise<StoredCells> {
  const { fills } = meter.aggregation;
  const slicer = new TimeSlicer(bounds?.asker);
  const cells: BucketCell[] = [];
  const outside = { start: false, end: false };
  for await (const some of rows) {
    for (const row of some) {
      if (hasRange) mergeOutside(outside, { start: row.at(-2) === IS_OUTSIDE, end: row.at(-1) === IS_OUTSIDE });
      const cell = toBucketCell(fills, row, running_uniques);
      // The engine answers a query without groups with one row, even if no row matches.
      if (cell.bucket.count > 0 || (cell.counted_uniques ?? 0) > 0) cells.push(cell);
      if (slicer.isOver()) await slicer.next(bounds?.signal);
    }
    if (bounds) checkCells(cells.length);
  }
  return { ...NO_CELLS, cells, outside };
}

function mergeOutside(outside: OutsideEvents, { start, end }: OutsideEvents): void {
  outside.start ||= start;
  outside.end ||= end;
}

export function findOutside({ first_us, last_us }: EventEnds, [start_us, end_us]: EventRange): OutsideEvents {
  return { start: first_us < start_us, end: last_us >= end_us };
}

const SMALL_CUSTOMERS_MAX = 20;

function isSmall({ external_customer_ids: customers }: BucketQuery): boolean {
  return customers !== null && customers.length <= SMALL_CUSTOMERS_MAX;
}

type BucketStatement = { sql: string; params: Record<string, unknown> };

/** Value of `max` over a condition, if the condition is true for at least one row. */
const IS_OUTSIDE = 1;

function buildBucketStatement(query: BucketQuery, event_range: EventRange | undefined): BucketStatement {
  const params: Record<string, unknown> = {};
  const rows = `from usage_buckets where ${rowsCondition(query, params)}`;
  const keys = listBucketKeys(query);
  const held = query.meter.aggregation.fills.map((field) => BUCKET_COLUMNS[field]);
  const merged = held.map((field) => field.merged);
  const named = keys.map(({ sql, name }) => `${sql} as ${name}`);
  const names = keys.map(({ name }) => name);
  const outside =
    event_range === undefined ? [] : buildOutsideConditions(query, event_range).map((condition) => `max(${condition})`);
  const statement = query.running_uniques && countsUniques(query) ? withRunningUniques : plainStatement;
  if (query.extra_uniques.length > 0) {
    const all = `select ${[...named, ...held.map((field) => field.column)].join(', ')} ${rows} union all ${extraRows(query, params)}`;
    return {
      params,
      sql: statement({ names, keyed: names, groups: names, from: `from (${all})`, merged, outside: [] }),
    };
  }
  const groups = keys.filter((key) => !key.is_constant).map(({ name }) => name);
  return { params, sql: statement({ names, keyed: named, groups, from: rows, merged, outside }) };
}

type BucketMerge = {
  readonly names: readonly string[];
  readonly keyed: readonly string[];
  readonly groups: readonly string[];
  readonly from: string;
  readonly merged: readonly string[];
  readonly outside: readonly string[];
};

function plainStatement({ keyed, groups, from, merged, outside }: BucketMerge): string {
  const grouping = groups.length === 0 ? '' : `group by ${groups.join(', ')}`;
  return `select ${[...keyed, ...merged, ...outside].join(', ')} ${from} ${grouping}`;
}

/** Counts the distinct values of each segment, and of all segments of its customer and group up to that segment. */
function withRunningUniques(merging: BucketMerge): string {
  const { names, outside } = merging;
  const merged = ['sum(event_count) as events', 'uniqExactArrayState(unique_values) as uniques'];
  const tests = outside.map((test, index) => `${test} as beyond_${index}`);
  const states = plainStatement({ ...merging, merged, outside: tests });
  const until =
    'uniqExactArrayMerge(uniques) over (partition by customer, group_of order by segment rows unbounded preceding)';
  const shown = [...names, 'events', 'finalizeAggregation(uniques)', until];
  return `select ${[...shown, ...outside.map((_test, index) => `beyond_${index}`)].join(', ')} from (${states})`;
}

function countsUniques({ meter }: BucketQuery): boolean {
  return meter.aggregation.fills.includes('uniques');
}

function buildOutsideConditions({ plan, meter }: BucketQuery, [start_us, end_us]: EventRange): string[] {
  const edges = plan.edge_ranges.map((range) => rangeCondition(meter.base_size, range)).join(' or ');
  return [`(${edges}) and first_us < ${start_us}`, `(${edges}) and last_us >= ${end_us}`];
}

type BucketKey = { sql: string; name: string; is_constant: boolean };

function listBucketKeys({
  plan,
  meter,
  by_customer,
}: Pick<BucketQuery, 'plan' | 'meter' | 'by_customer'>): BucketKey[] {
  const start = 'toInt64(toUnixTimestamp64Second(bucket_start))';
  const starts = plan.segments.map((segment) => Math.floor(segment.start_us / US_PER_SECOND));
  const key = (name: string, sql: string | undefined, otherwise: string): BucketKey => ({
    name,
    sql: sql ?? otherwise,
    is_constant: sql === undefined,
  });
  return [
    key(
      'segment',
      starts.length > 1 ? `roundDown(${start}, [${starts.join(',')}])` : undefined,
      String(starts[0] ?? 0),
    ),
    key('row_window', plan.rows_are_windows ? start : undefined, '0'),
    key('group_of', meter.group_by === undefined ? undefined : 'group_key', "''"),
    key('customer', by_customer ? 'external_customer_id' : undefined, "''"),
  ];
}

function rowsCondition(query: BucketQuery, params: Record<string, unknown>): string {
  const { tenant_id, environment_id, meter, meter_version, external_customer_ids: customers } = query;
  Object.assign(params, { tenant_id, environment_id, meter_id: meter.id, meter_version });
  const conditions = [
    'tenant_id = {tenant_id:String} and environment_id = {environment_id:String}',
    'meter_id = {meter_id:String} and meter_version = {meter_version:UInt32}',
  ];
  if (customers?.length === 1) {
    conditions.push('external_customer_id = {customer:String}');
    params['customer'] = customers[0];
  } else if (customers !== null) {
    conditions.push('external_customer_id in {customers:Array(String)}');
    params['customers'] = customers;
  }
  conditions.push(buildRangesCondition([{ meter, plan: query.plan }]));
  return conditions.join(' and ');
}

/** Builds the condition for the row ranges of the plans, merged per row size. */
export function buildRangesCondition(query: readonly Pick<BucketQuery, 'meter' | 'plan' | 'wants_later'>[]): string {
  const bySize = new Map<string, SegmentRange[]>();
  const add = (size: string, ranges: readonly SegmentRange[]) => {
    if (ranges.length > 0) bySize.set(size, [...(bySize.get(size) ?? []), ...ranges]);
  };
  for (const { meter, plan, wants_later } of query) {
    add(meter.base_size, plan.base_ranges);
    if (wants_later && planEnd(plan) < LAST_INSTANT_US) add(meter.base_size, [[planEnd(plan), LAST_INSTANT_US + 1]]);
    add('DAY', plan.day_ranges);
  }
  const times = [...bySize].flatMap(([size, ranges]) =>
    mergeRanges(ranges).map((range) => rangeCondition(size, range)),
  );
  return `(${times.join(' or ') || '0'})`;
}

export function planEnd({ base_ranges, day_ranges }: SegmentPlan): Microseconds {
  return Math.max(...[...base_ranges, ...day_ranges].map(([, end_us]) => end_us));
}

function rangeCondition(size: string, [start_us, end_us]: SegmentRange): string {
  const at = (us: number) => `toDateTime64(${us / US_PER_SECOND}, 0, 'UTC')`;
  return `(size = '${size}' and bucket_start >= ${at(start_us)} and bucket_start < ${at(end_us)})`;
}

/** Builds rows that contain only distinct values, with the columns of the stored rows. */
function extraRows(query: BucketQuery, params: Record<string, unknown>): string {
  params['extra'] = JSON.stringify(
    query.extra_uniques.map((extra) => [
      Math.floor(extra.segment_us / US_PER_SECOND),
      extra.window_us / US_PER_SECOND,
      extra.group_key,
      extra.customer,
      extra.values,
    ]),
  );
  const held = query.meter.aggregation.fills.map((field) => BUCKET_COLUMNS[field].extra);
  return `select x.1, x.2, x.3, x.4, ${held.join(', ')}
      from (select arrayJoin(JSONExtract({extra:String}, 'Array(Tuple(Int64, Int64, String, String, Array(String)))')) as x)`;
}

/** Column of a bucket field: how it is read and merged. */
type BucketColumn = {
  readonly column: string;
  readonly merged: string;
  /** Value of the column in a row that contains only distinct values. */
  readonly extra: string;
  read(value: unknown): Partial<BucketFields>;
};

export const BUCKET_COLUMNS: Readonly<Record<BucketField, BucketColumn>> = {
  count: { column: 'event_count', merged: 'sum(event_count)', extra: '0', read: (value) => ({ count: Number(value) }) },
  sum: { column: 'sum', merged: 'sum(sum)', extra: '0', read: (value) => ({ sum: parseScaled(value) }) },
  weighted_sum: {
    column: 'weighted_sum',
    merged: 'sum(weighted_sum)',
    extra: '0',
    read: (value) => ({ weighted_sum: parseScaled(value) }),
  },
  min: { column: 'min', merged: 'min(min)', extra: 'null', read: (value) => ({ min: parseScaledOrNull(value) }) },
  max: { column: 'max', merged: 'max(max)', extra: 'null', read: (value) => ({ max: parseScaledOrNull(value) }) },
  latest: {
    column: 'latest',
    merged: 'max(latest)',
    extra: NO_LATEST,
    read: (value) => ({ latest: parseLatest(value as [string, string, string]) }),
  },
  // The values remain in the store; the statement returns only their count.
  uniques: {
    column: 'unique_values',
    merged: 'uniqExactArray(unique_values)',
    extra: 'x.5',
    read: () => ({}),
  },
};

export function toBucketCell(fills: readonly BucketField[], row: CellRow, running_uniques = false): BucketCell {
  const [segment_s, window_s, group_key, customer, ...held] = row;
  const read = fills.map((field, index) => BUCKET_COLUMNS[field].read(held[index]));
  const uniques_at = fills.indexOf('uniques');
  return {
    segment_us: Number(segment_s) * US_PER_SECOND,
    window_us: Number(window_s) * US_PER_SECOND,
    group_key,
    customer,
    counted_uniques: uniques_at < 0 ? null : Number(held[uniques_at]),
    ...(uniques_at >= 0 && running_uniques ? { running_uniques: Number(held[fills.length]) } : {}),
    bucket: UsageBucket.of(Object.assign({}, NOTHING, ...read) as BucketFields),
  };
}

const NOTHING: BucketFields = { count: 0, sum: 0n, weighted_sum: 0n, min: null, max: null, latest: null, uniques: [] };
