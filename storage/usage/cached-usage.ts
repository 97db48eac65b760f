/** Cached cells of one query (storage/usage/usage-cache.ts), as of the progress that the cache follows. */

import { type Microseconds, US_PER_SECOND } from '../../core/foundation/time/instant.ts';
import { isInRanges, mergeRanges, type SegmentRange } from '../../core/metering/analytics/segments.ts';
import { UsageBucket } from '../../core/metering/bucket.ts';
import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import { findSegmentIndex } from './batched-cells.ts';
import {
  type BucketCell,
  type BucketQuery,
  combineEnds,
  type EventEnds,
  type EventRange,
  findOutside,
  planEnd,
  type StoredCells,
} from './bucket-cells.ts';

/** Maximum number of cells of a cached query. The limit is needed because the number of groups is not limited. */
export const CELLS_MAX = 200;

const OWN_WEIGHT = 5;

type CellPlace = { readonly segment: number } & Pick<BucketCell, 'window_us' | 'group_key' | 'customer'>;
type CachedCell = CellPlace & Pick<BucketCell, 'bucket'>;
type LaterAddition = { readonly start_us: Microseconds; readonly cell: CachedCell; ends: EventEnds };

export class CachedUsage {
  key = '';
  readonly meter_id: string;
  readonly customers: ReadonlySet<string>;
  /** Key for queries that end later; null if it is unknown whether rows follow the range. */
  readonly open_key: string | null;
  #query: BucketQuery;
  #ranges: readonly SegmentRange[];
  readonly #cells = new Map<string, CachedCell>();
  /** Cell to which the last row was added, as a shortcut: most queries have one cell, and rows arrive cell by cell. */
  #last: CachedCell | null = null;
  #ends: EventEnds;
  #end_us: Microseconds;
  /**
   * Rows added after the end of the range since the range was read, by position: a query with a later end includes them. Null if later rows
   * existed already when the range was read.
   */
  #later: Map<string, LaterAddition> | null;

  constructor({ bounds: _bounds, ...query }: BucketQuery, { cells, ends, has_later }: StoredCells) {
    this.meter_id = query.meter.id;
    this.customers = new Set(query.external_customer_ids);
    this.#query = query;
    this.#ranges = mergeQueryRanges(query);
    this.#ends = ends;
    this.#end_us = planEnd(query.plan);
    this.open_key = has_later ? null : toOpenQueryKey(query);
    this.#later = this.open_key === null ? null : new Map();
    for (const { segment_us, window_us, group_key, customer, bucket } of cells) {
      const segment = findSegmentIndex(query.plan.segments, segment_us / US_PER_SECOND);
      this.#bucketAt({ segment, window_us, group_key, customer }).combine(bucket);
    }
  }

  get tenant_id(): string {
    return this.#query.tenant_id;
  }

  /** Weight in cells; an entry without cells also has weight. */
  get weight(): number {
    return OWN_WEIGHT + this.#cells.size + (this.#later?.size ?? 0);
  }

  add(row: BucketRow, version: number): void {
    const { tenant_id, environment_id, meter_version } = this.#query;
    if (row.tenant_id !== tenant_id || row.environment_id !== environment_id || version !== meter_version) return;
    if (this.is_overgrown) return;
    const start_us = row.bucket_start_us;
    const isInside = isInRanges(this.#ranges, start_us);
    if (!isInside && !(this.#later && start_us >= this.#end_us)) return;
    if (!isInside) return this.#deferAddition(row, this.#later!);
    addRow(row, this.#bucketAt(this.#toPlace(row)));
    if (isInRanges(this.#query.plan.edge_ranges, start_us)) this.#ends = combineEnds(this.#ends, toEventEnds(row));
  }

  /** Whether the entry has more than `CELLS_MAX` cells. No further rows are added to it, so it must not answer queries. */
  get is_overgrown(): boolean {
    return this.#cells.size > CELLS_MAX;
  }

  /** Extends the entry to the end of this query; false if the rows added up to that end are unknown. */
  extendTo({ bounds: _bounds, ...query }: BucketQuery): boolean {
    const { plan } = this.#query;
    const before_us = this.#end_us;
    if (this.#later === null || this.is_overgrown || planEnd(query.plan) < before_us) return false;
    // The event times of each edge bucket must be known, because `findOutside` compares them with the range.
    const isKnown = ([from, to]: SegmentRange) =>
      from >= before_us || plan.edge_ranges.some((edge) => edge[0] === from && edge[1] === to);
    if (!query.plan.edge_ranges.every(isKnown)) return false;
    this.#query = query;
    this.#ranges = mergeQueryRanges(query);
    this.#end_us = planEnd(query.plan);
    for (const [place, addition] of this.#later) {
      if (!isInRanges(this.#ranges, addition.start_us)) continue;
      this.#later.delete(place);
      const { cell, ends } = addition;
      this.#bucketAt(cell).combine(cell.bucket);
      if (isInRanges(this.#query.plan.edge_ranges, addition.start_us)) this.#ends = combineEnds(this.#ends, ends);
    }
    return true;
  }

  /**
   * Converts the entry to cells for a query with the entry's key. Segment starts are taken from this query, because its first segment may
   * begin at another instant of the same bucket.
   */
  toStoredCells({ plan: { segments } }: BucketQuery, event_range: EventRange | undefined): StoredCells {
    const cells = [...this.#cells.values()].map(({ segment, bucket, ...place }): BucketCell => {
      const segment_us = Math.floor((segments[segment]?.start_us ?? 0) / US_PER_SECOND) * US_PER_SECOND;
      return { ...place, segment_us, counted_uniques: null, bucket: UsageBucket.of(bucket) };
    });
    const outside = event_range === undefined ? { start: false, end: false } : findOutside(this.#ends, event_range);
    return { cells, outside, ends: this.#ends, has_later: this.#later === null };
  }

  #toPlace(row: BucketRow): CellPlace {
    const { meter, by_customer, plan } = this.#query;
    const { bucket_start_us, group_key, external_customer_id } = row;
    return {
      segment: findSegmentIndex(plan.segments, bucket_start_us / US_PER_SECOND),
      window_us: plan.rows_are_windows ? bucket_start_us : 0,
      group_key: meter.group_by === undefined ? '' : group_key,
      customer: by_customer ? external_customer_id : '',
    };
  }

  #deferAddition(row: BucketRow, later: Map<string, LaterAddition>): void {
    const start_us = row.bucket_start_us;
    const cell = { ...this.#toPlace(row), bucket: new UsageBucket() };
    const place = JSON.stringify([start_us, cell.group_key, cell.customer]);
    const known = later.get(place);
    if (known === undefined && later.size >= CELLS_MAX) {
      this.#later = null;
      return;
    }
    addRow(row, (known ?? { cell }).cell.bucket);
    if (known) known.ends = combineEnds(known.ends, toEventEnds(row));
    else later.set(place, { start_us, cell, ends: toEventEnds(row) });
  }

  #bucketAt({ segment, window_us, group_key, customer }: CellPlace): UsageBucket {
    const last = this.#last;
    const isThere = last?.segment === segment && last.window_us === window_us && last.group_key === group_key;
    if (isThere && last.customer === customer) return last.bucket;
    const key = JSON.stringify([segment, window_us, group_key, customer]);
    let cell = this.#cells.get(key);
    if (cell === undefined)
      this.#cells.set(key, (cell = { segment, window_us, group_key, customer, bucket: new UsageBucket() }));
    this.#last = cell;
    return cell.bucket;
  }
}

function addRow(row: BucketRow, bucket: UsageBucket): void {
  if (row.addTo) row.addTo(bucket);
  else bucket.combine(UsageBucket.of(row));
}

function toEventEnds({ first_us, last_us, count }: BucketRow): EventEnds {
  return {
    first_us: first_us ?? Number.NEGATIVE_INFINITY,
    last_us: last_us ?? Number.POSITIVE_INFINITY,
    event_count: count,
  };
}

/** Returns a key. Queries with one key are answered by the same rows with the same segments; consecutive "until now" queries share it. */
export function toQueryKey(query: BucketQuery, event_range: EventRange | undefined): string {
  const { segments, rows_are_windows, edge_ranges } = query.plan;
  return JSON.stringify([
    toSeriesKey(query),
    [mergeQueryRanges(query), event_range === undefined ? null : edge_ranges, rows_are_windows],
    segments.slice(1).map(({ start_us }) => start_us),
  ]);
}

/**
 * Returns the key of all queries that differ only in their ends, for which one entry can be extended to the next hour. Null if the query
 * has several ranges or is cut into windows.
 */
export function toOpenQueryKey(query: BucketQuery): string | null {
  const { segments, rows_are_windows, edge_ranges } = query.plan;
  const [range, ...more] = mergeQueryRanges(query);
  if (range === undefined || more.length > 0 || segments.length > 1 || rows_are_windows) return null;
  const [start_us] = range;
  return JSON.stringify([toSeriesKey(query), start_us, edge_ranges.some(([from_us]) => from_us === start_us)]);
}

function toSeriesKey({
  tenant_id,
  environment_id,
  meter,
  meter_version,
  external_customer_ids,
  by_customer,
}: BucketQuery) {
  return [tenant_id, environment_id, meter.id, meter_version, external_customer_ids, by_customer];
}

/** Merges ranges regardless of the row size that covers them. */
function mergeQueryRanges({ plan: { base_ranges, day_ranges } }: BucketQuery): SegmentRange[] {
  return mergeRanges([...base_ranges, ...day_ranges]);
}
