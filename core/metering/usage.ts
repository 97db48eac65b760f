/**
 * Computes numbers from merged partial aggregates: per key the total of a range and the requested windows. All usage
 * numbers are computed here (docs/rules/usage.md, "One number"), from the rows of the store and from the raw events of
 * unaligned edges.
 *
 * There may be tens of thousands of windows. The computation yields after each step, so that the caller can run other
 * work in between; the result does not depend on that.
 */

import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { FarthingError } from '../foundation/error.ts';
import { groupBy } from '../foundation/group-by.ts';
import { type Microseconds, US_PER_SECOND } from '../foundation/time/instant.ts';
import type { SegmentPlan, UsageSegment } from './analytics/segments.ts';
import { UsageBucket } from './bucket.ts';
import type { CompiledMeter } from './compiled-meter.ts';

/** A partial aggregate with its position: key, segment and group. Several cells may have the same position. */
export type UsageCell = {
  /** Key of the usage query to which the cell belongs, for example a customer; '' if the query has one total. */
  readonly key: string;
  readonly segment_us: Microseconds;
  /** Start of the base row if rows are windows; otherwise ignored. */
  readonly window_us: Microseconds;
  readonly group_key: string;
  readonly bucket: UsageBucket;
  /**
   * Number of distinct values if the store returned only their count; 0 if the count of another cell includes them. Null if the value is
   * computed from `bucket`.
   */
  readonly counted_uniques: number | null;
  /** Number of distinct values in all segments up to the end of this one, if requested from the store. */
  readonly running_uniques?: number | undefined;
};

export type WindowAnswer = {
  /** The part of the window that lies in the range. */
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  /** Start of the window by the clock, which may be before the range. */
  readonly window_us: Microseconds;
  readonly value: Decimal;
  readonly event_count: number;
  /** Values per bucket_size window of the meter, and per group in it; null for a meter without bucket_size. */
  readonly buckets: readonly (readonly Decimal[])[] | null;
  readonly bucket_starts_us?: readonly Microseconds[] | null;
  /** Units × microseconds, exact; only for a meter that integrates over time. */
  readonly integral?: Decimal;
  /** Value of the range up to the end of the window, if requested; only for a meter without bucket_size. */
  readonly running_value?: Decimal | undefined;
};

export type UsageByKeyQuery = {
  readonly meter: CompiledMeter;
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly plan: SegmentPlan;
  readonly cells: readonly UsageCell[];
  /** Keys for which an answer is returned even if nothing was counted. */
  readonly keys: readonly string[];
  readonly wants: Wants;
};

/**
 * By default each window is computed separately. `running` computes each window from the start of the range. `running_values` adds to each
 * separate window the value of the range up to the end of that window. `every_window` also returns windows without events.
 */
export type Wants = {
  readonly total: boolean;
  readonly windows: boolean;
  readonly running: boolean;
  readonly running_values?: boolean;
  readonly every_window?: boolean;
};

/**
 * Whether the meter supports cumulative windows, each of which includes all earlier ones. Distinct counts cannot be
 * merged, and a weighted sum changes even without events.
 */
export function canRun({ aggregation: { fills } }: Pick<CompiledMeter, 'aggregation'>): boolean {
  return !fills.includes('uniques') && !fills.includes('weighted_sum');
}

export type UsageByKey = {
  readonly totals: ReadonlyMap<string, WindowAnswer>;
  /** Answers by key, in time order; only windows with events unless `every_window` is set. */
  readonly windows: ReadonlyMap<string, readonly WindowAnswer[]>;
};

/** A computation that yields after each step. */
export type Steps<Result> = Generator<void, Result>;

export function* computeUsageByKey(query: UsageByKeyQuery): Steps<UsageByKey> {
  const { meter, start_us, end_us, wants } = query;
  const ranges = wants.windows ? yield* windowRanges(query.plan) : new Map<number, WindowRange>();
  const whole = { start_us, end_us, window_us: start_us };
  const totals = new Map<string, WindowAnswer>();
  const windows = new Map<string, WindowAnswer[]>();
  for (const [key, of] of yield* cellsByKey(query, ranges)) {
    // The total is computed over the whole range and never added up from windows: an average of averages is not the average.
    if (wants.total) totals.set(key, yield* computeAnswer(meter, of.cells, whole));
    if (!wants.windows) continue;
    windows.set(key, yield* wants.running ? runningAnswers(query, of, ranges) : ownAnswers(query, of, ranges));
  }
  return { totals, windows };
}

function* ownAnswers(query: UsageByKeyQuery, { windows }: KeyCells, ranges: WindowRanges): Steps<WindowAnswer[]> {
  const { meter, wants } = query;
  const running = wants.running_values && meter.bucket_size === undefined ? new RunningValue(query) : null;
  const answers: WindowAnswer[] = [];
  for (const window_us of wants.every_window ? ranges.keys() : windows.keys()) {
    const inside = windows.get(window_us) ?? [];
    const range = ranges.get(window_us)!;
    const answer = yield* computeAnswer(meter, inside, range);
    if (running) yield* running.take(inside);
    answers.push(running ? { ...answer, running_value: running.valueAt(range.end_us) } : answer);
  }
  return answers;
}

/** The value of a range up to the end of each of its windows. Windows must be added in time order. */
class RunningValue {
  readonly #query: Pick<UsageByKeyQuery, 'meter' | 'start_us' | 'end_us'>;
  readonly #merged = new UsageBucket();
  #uniques: number | null = null;

  constructor(query: Pick<UsageByKeyQuery, 'meter' | 'start_us' | 'end_us'>) {
    this.#query = query;
  }

  *take(cells: readonly OwnedCell[]): Steps<void> {
    for (const { bucket, running_uniques } of cells) {
      this.#merged.combine(bucket);
      if (running_uniques !== undefined) this.#uniques = Math.max(this.#uniques ?? 0, running_uniques);
      yield;
    }
  }

  valueAt(end_us: Microseconds): Decimal {
    const { meter, ...range } = this.#query;
    if (this.#uniques !== null) return new Decimal(this.#uniques);
    // An integral is divided by the length of its range. With the length of the whole range, the running value grows up to the total.
    const isIntegral = meter.aggregation.chain_rule === 'integral';
    const start_us = isIntegral ? end_us - (range.end_us - range.start_us) : range.start_us;
    return computeBucketValue(meter, this.#merged, { start_us, end_us });
  }
}

function* runningAnswers(
  { meter, start_us }: UsageByKeyQuery,
  of: KeyCells,
  ranges: WindowRanges,
): Steps<WindowAnswer[]> {
  if (!canRun(meter)) throw new FarthingError('internal_error', `windows of meter ${meter.id} do not run`);
  if (meter.bucket_size !== undefined) return yield* runningBuckets(meter, start_us, { of, ranges });
  const merged = new UsageBucket();
  const answers: WindowAnswer[] = [];
  for (const [window_us, inside] of of.windows) {
    for (const { bucket } of inside) {
      merged.combine(bucket);
      yield;
    }
    const { end_us } = ranges.get(window_us)!;
    const value = meter.aggregation.finish(merged, { start_us, end_us, multiplier: meter.multiplier });
    answers.push({ start_us, end_us, window_us, value, event_count: merged.count, buckets: null });
  }
  return answers;
}

/** One bucket_size window: its merged buckets by group so far, and the value of each group. */
type OwnWindow = {
  readonly own_us: Microseconds;
  readonly merged: Map<string, UsageBucket>;
  values: readonly Decimal[];
};

/**
 * Computes cumulative windows of a meter with windows of its own. `values` is replaced, never changed in place, because
 * earlier answers refer to it.
 */
function* runningBuckets(
  meter: CompiledMeter,
  start_us: Microseconds,
  { of, ranges }: { of: KeyCells; ranges: WindowRanges },
): Steps<WindowAnswer[]> {
  const own = new Map<Microseconds, OwnWindow>();
  // The list is in time order: each bucket_size window is appended with the requested window in which it begins.
  const all: OwnWindow[] = [];
  const answers: WindowAnswer[] = [];
  let event_count = 0;
  let value = ZERO;
  for (const [window_us, inside] of of.windows) {
    const { end_us } = ranges.get(window_us)!;
    const touched = new Set<OwnWindow>();
    const begun: OwnWindow[] = [];
    for (const { own_us, group_key, bucket } of inside) {
      const window = getOrCreate(own, own_us, () => {
        const made: OwnWindow = { own_us, merged: new Map(), values: [] };
        begun.push(made);
        return made;
      });
      getOrCreate(window.merged, group_key, () => new UsageBucket()).combine(bucket);
      event_count += bucket.count;
      touched.add(window);
      yield;
    }
    for (const window of begun.sort((a, b) => a.own_us - b.own_us)) all.push(window);
    for (const window of touched) {
      const values = Array.from(window.merged.values(), (merged) =>
        computeBucketValue(meter, merged, { start_us, end_us }),
      );
      value = value.plus(sumDecimals(values)).minus(sumDecimals(window.values));
      window.values = values;
      yield;
    }
    const buckets = all.map(({ values }) => values);
    const bucket_starts_us = all.map(({ own_us }) => own_us);
    answers.push({ start_us, end_us, window_us, value, event_count, buckets, bucket_starts_us });
    yield;
  }
  return answers;
}

function getOrCreate<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

type WindowRange = { readonly start_us: Microseconds; readonly end_us: Microseconds; readonly window_us: Microseconds };
type WindowRanges = ReadonlyMap<number, WindowRange>;
type OwnedCell = UsageCell & { readonly own_us: Microseconds };
/** The cells of one key: all of them, and those of each requested window in time order. */
type KeyCells = { readonly cells: OwnedCell[]; readonly windows: Map<number, OwnedCell[]> };

/** Maps the start of each requested window, in time order, to its part inside the range. */
function* windowRanges({ segments }: SegmentPlan): Steps<Map<number, WindowRange>> {
  const ranges = new Map<number, WindowRange>();
  for (const { window_us, start_us, end_us } of segments) {
    const known = ranges.get(window_us);
    ranges.set(window_us, { start_us: known?.start_us ?? start_us, end_us, window_us });
    yield;
  }
  return ranges;
}

function* cellsByKey(query: UsageByKeyQuery, ranges: ReadonlyMap<number, WindowRange>): Steps<Map<string, KeyCells>> {
  const byKey = new Map<string, KeyCells>(query.keys.map((key) => [key, { cells: [], windows: new Map() }]));
  for (const [window_us, cells] of yield* cellsByWindow(query, ranges)) {
    for (const cell of cells) {
      let of = byKey.get(cell.key);
      if (of === undefined) byKey.set(cell.key, (of = { cells: [], windows: new Map() }));
      of.cells.push(cell);
      if (ranges.size > 0) pushTo(of.windows, window_us, cell);
      yield;
    }
  }
  return byKey;
}

/** Groups cells by window. The store returns cells in any order. Grouping is faster than sorting and can be interrupted. */
function* cellsByWindow(
  { plan, cells }: UsageByKeyQuery,
  ranges: ReadonlyMap<number, WindowRange>,
): Steps<Map<number, OwnedCell[]>> {
  const byWindow = new Map<number, OwnedCell[]>([...ranges.keys()].map((window_us) => [window_us, []]));
  const bySegment = yield* segmentsByStart(plan.segments);
  for (const cell of cells) {
    const segment = bySegment.get(Math.floor(cell.segment_us / US_PER_SECOND))!;
    const own_us = plan.rows_are_windows ? cell.window_us : segment.own_us;
    pushTo(byWindow, segment.window_us, { ...cell, own_us });
    yield;
  }
  return byWindow;
}

/** Indexes segments by their starts in seconds, as the store returns them. */
function* segmentsByStart(segments: readonly UsageSegment[]): Steps<Map<number, UsageSegment>> {
  const byStart = new Map<number, UsageSegment>();
  for (const segment of segments) {
    byStart.set(Math.floor(segment.start_us / US_PER_SECOND), segment);
    yield;
  }
  return byStart;
}

function* computeAnswer(meter: CompiledMeter, cells: readonly OwnedCell[], range: WindowRange): Steps<WindowAnswer> {
  let event_count = 0;
  for (const cell of cells) event_count += cell.bucket.count;
  if (meter.bucket_size === undefined) {
    const value = yield* computeValue(meter, cells, range);
    if (!meter.aggregation.integrate) return { ...range, value, event_count, buckets: null };
    const integral = meter.aggregation.integrate(yield* mergeCells(cells), range);
    return { ...range, value, event_count, buckets: null, integral };
  }
  const byBucket = groupBy(cells, (cell) => cell.own_us);
  const buckets: Decimal[][] = [];
  const bucket_starts_us = [...byBucket.keys()].sort((a, b) => a - b);
  let value = ZERO;
  for (const own_us of bucket_starts_us) {
    const groups: Decimal[] = [];
    for (const inside of groupBy(byBucket.get(own_us)!, (cell) => cell.group_key).values()) {
      const one = yield* computeValue(meter, inside, range);
      value = value.plus(one);
      groups.push(one);
    }
    buckets.push(groups);
  }
  return { ...range, value, event_count, buckets, bucket_starts_us };
}

function* computeValue(meter: CompiledMeter, cells: readonly OwnedCell[], range: WindowRange): Steps<Decimal> {
  const counted = cells.flatMap(({ counted_uniques }) => counted_uniques ?? []);
  if (counted.length > 0) return countedOnce(counted);
  return computeBucketValue(meter, yield* mergeCells(cells), range);
}

function* mergeCells(cells: readonly OwnedCell[]): Steps<UsageBucket> {
  const merged = new UsageBucket();
  for (const cell of cells) {
    merged.combine(cell.bucket);
    yield;
  }
  return merged;
}

/** The value of one merged bucket: all events of a range, or one bucket_size window of a meter. */
export function computeBucketValue(
  meter: Pick<CompiledMeter, 'aggregation' | 'multiplier'>,
  merged: UsageBucket,
  { start_us, end_us }: Pick<WindowRange, 'start_us' | 'end_us'>,
): Decimal {
  return meter.aggregation.finish(merged, { start_us, end_us, multiplier: meter.multiplier });
}

/** Counts of distinct values cannot be added: one value may be in several counts. */
function countedOnce(counts: readonly number[]): Decimal {
  const [count = 0, ...others] = counts.filter((count) => count > 0);
  if (others.length > 0)
    throw new FarthingError('system_error', 'distinct values of one range were counted in several pieces');
  return new Decimal(count);
}

function pushTo<K, T>(groups: Map<K, T[]>, key: K, item: T): void {
  const group = groups.get(key);
  if (group) group.push(item);
  else groups.set(key, [item]);
}
