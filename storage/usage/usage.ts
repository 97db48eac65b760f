/**
 * The one door to usage: preview, invoice, usage endpoints, analytics and audits ask here, so that they cannot disagree
 * (decisions §16). The answer comes from days, base buckets and the raw rows of ragged ends; while a meter's past is still
 * being counted, from raw rows alone. What fails is thrown and never a zero (decisions §18).
 */
import type { Meter } from '../../core/catalogue/meter.ts';
import { type SegmentPlan, planSegments, type Segment } from '../../core/analytics/segments.ts';
import { Decimal, sumOf } from '../../core/decimal.ts';
import { FarthingError } from '../../core/error.ts';
import { UsageBucket } from '../../core/metering/bucket.ts';
import { type CompiledMeter, compileMeter, measure } from '../../core/metering/compiled-meter.ts';
import { matches } from '../../core/metering/match.ts';
import type { PropertySource } from '../../core/metering/event-text.ts';
import { formatTimestamp } from '../../core/metering/timestamp.ts';
import type { Scope } from '../../core/scope.ts';
import type { WindowSize } from '../../core/time/window.ts';
import { windowStart } from '../../core/time/window.ts';
import { type RawEventsWanted, countRawEvents, rawEvents } from '../events/raw-events.ts';
import { barriersOf, currentVersions } from '../meter-versions.ts';
import type { Stores } from '../stores.ts';
import { type Cell, type ExtraUniques, bucketCells } from './bucket-cells.ts';
import { consistently, type Snapshot } from './snapshot.ts';

/** What a meter measured in the half-open range [start_us, end_us), cut into windows when asked. */
export type UsageAsked = {
  readonly meter: Pick<Meter, 'id'>;
  /** All customers when null; several are one set. */
  readonly external_customer_ids: readonly string[] | null;
  readonly start_us: number;
  readonly end_us: number;
  readonly window_size?: WindowSize | undefined;
  readonly timezone?: string | undefined;
  readonly billing_anchor_ms?: number | undefined;
  /** One answer per customer instead of one for the set. */
  readonly by_customer?: boolean;
  /** Only events that pass; such a question is answered from raw rows. */
  readonly only?: { readonly sources?: readonly string[]; readonly passes?: (properties: PropertySource) => boolean };
  /** One answer per key that an event belongs to; such a question is answered from raw rows. */
  readonly key_of?: (event: { source: string; properties: PropertySource }) => string;
  readonly now_ms?: number;
};

export type WindowAnswer = {
  readonly start_us: number;
  readonly end_us: number;
  readonly value: Decimal;
  readonly event_count: number;
  /** Values per bucket_size window of the meter, per group in it; null for a meter without bucket_size. */
  readonly buckets: readonly (readonly Decimal[])[] | null;
};

export type UsageOfKey = {
  /** The customer with by_customer, the key with key_of, '' otherwise. */
  readonly key: string;
  readonly total: WindowAnswer;
  /** In order of time, only those with events; empty unless windows were asked for. */
  readonly windows: readonly WindowAnswer[];
};

export type UsageReport = {
  readonly usage: readonly UsageOfKey[];
  readonly as_of: string;
  readonly high_water: Readonly<Record<string, string>>;
  /** Which version of the meter counted. */
  readonly meter_version: number;
  /** Whether the answer came from pre-aggregated rows, ragged ends aside. */
  readonly from: 'buckets' | 'raw';
};

export async function askUsage(stores: Stores, scope: Scope, asked: UsageAsked): Promise<UsageReport> {
  const report = await askOnce(stores, scope, asked);
  if (asked.window_size === undefined || !report.counts_uniques) return report;
  // Distinct values of windows cannot be added up: the totals are a question of their own.
  const totals = await askOnce(stores, scope, { ...asked, window_size: undefined });
  const windows = new Map(report.usage.map((usage) => [usage.key, usage.windows]));
  return { ...totals, usage: totals.usage.map((usage) => ({ ...usage, windows: windows.get(usage.key) ?? [] })) };
}

async function askOnce(
  stores: Stores,
  scope: Scope,
  asked: UsageAsked,
): Promise<UsageReport & { counts_uniques: boolean }> {
  const as_of = await freshness(stores, asked.now_ms ?? Date.now());
  const versions = await currentVersions(stores.postgres, scope, asked.meter.id);
  if (!versions) throw new FarthingError('internal_error', `meter ${asked.meter.id} has no version to count by`);
  const { newest, counting } = versions;
  const meter = compileMeter(counting.definition!);
  const stop = newest === counting ? undefined : await barriersOf(stores.postgres, newest);
  const grid = { timezone: asked.timezone ?? 'UTC', billing_anchor: asked.billing_anchor_ms ?? null };
  const plan = planSegments(meter, { start_us: asked.start_us, end_us: asked.end_us, window_size: asked.window_size, grid });
  const raw: SegmentPlan = { ...plan, base_ranges: [], day_ranges: [], raw_ranges: [[asked.start_us, asked.end_us]] };
  const wantsRaw = counting.state !== 'live' || asked.only !== undefined || asked.key_of !== undefined;
  const question = { stores, scope, asked, meter, meter_version: counting.version, grid, stop };
  const read = (used: SegmentPlan) => (snapshot: Snapshot) => cellsOf({ ...question, plan: used, snapshot });
  const { value: cells, snapshot } = await consistently(stores, {
    read: read(wantsRaw ? raw : plan),
    readRaw: read(raw),
    matters: async (doubts) => {
      if (wantsRaw || plan.raw_ranges.length === 0) return false;
      const wanted = { ...rawWanted({ ...question, plan, snapshot: { before: new Map() } }), doubts };
      return (await countRawEvents(stores.clickhouse, wanted)) > 0;
    },
  });
  return {
    usage: answersOf({ meter, asked, plan, cells }),
    as_of,
    high_water: Object.fromEntries([...snapshot.before].map(([partition, offset]) => [partition, String(offset)])),
    meter_version: counting.version,
    from: wantsRaw ? 'raw' : 'buckets',
    counts_uniques: meter.aggregation.fills.includes('uniques'),
  };
}

/** The shape in which billing asks: one customer, one range, the buckets for prices that apply per bucket. */
export type UsageQuestion = {
  readonly meter: Meter;
  readonly external_customer_id: string;
  readonly start_ms: number;
  readonly end_ms: number;
  /** IANA zone that aligns the meter's own buckets; UTC when absent. */
  readonly timezone?: string;
  readonly billing_anchor_ms?: number;
  readonly now_ms?: number;
};

export type UsageAnswer = {
  /** The meter's value over the whole range, exact; may be negative (the billed quantity is floored by billing). */
  readonly quantity: Decimal;
  readonly event_count: number;
  readonly buckets: readonly (readonly Decimal[])[] | null;
  /** Everything that was durable in the log before this instant is in the answer. */
  readonly as_of: string;
  /** Per partition, the log offset that the answer includes up to (exclusive). */
  readonly high_water: Readonly<Record<string, string>>;
  readonly meter_version: number;
};

export async function readUsage(stores: Stores, scope: Scope, question: UsageQuestion): Promise<UsageAnswer> {
  const report = await askUsage(stores, scope, {
    meter: question.meter,
    external_customer_ids: [question.external_customer_id],
    start_us: question.start_ms * 1000,
    end_us: question.end_ms * 1000,
    timezone: question.timezone,
    billing_anchor_ms: question.billing_anchor_ms,
    ...(question.now_ms === undefined ? {} : { now_ms: question.now_ms }),
  });
  const { total } = report.usage[0]!;
  const { as_of, high_water, meter_version } = report;
  return { quantity: total.value, event_count: total.event_count, buckets: total.buckets, as_of, high_water, meter_version };
}

type Reading = {
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
type PlacedCell = Omit<Cell, 'customer'> & { readonly key: string };

async function cellsOf(reading: Reading): Promise<PlacedCell[]> {
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

function extraOf(cell: PlacedCell): ExtraUniques {
  return {
    segment_us: cell.segment_us,
    window_us: cell.window_us,
    group_key: cell.group_key,
    customer: cell.key,
    values: cell.bucket.uniques,
  };
}

function rawWanted({ scope, asked, meter, plan, snapshot, stop }: Reading): RawEventsWanted {
  return {
    ...scope,
    event_name: meter.event_name,
    ...(asked.external_customer_ids === null ? {} : { external_customer_ids: asked.external_customer_ids }),
    ...(asked.only?.sources ? { sources: asked.only.sources } : {}),
    ranges: plan.raw_ranges,
    before: stop ? earlierOf(snapshot.before, stop) : snapshot.before,
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
      cell = { segment_us: segment.start_us, window_us, group_key: contribution.group_key, key, bucket: new UsageBucket(), unique_count: -1 };
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

function answersOf({
  meter,
  asked,
  plan,
  cells,
}: {
  meter: CompiledMeter;
  asked: UsageAsked;
  plan: SegmentPlan;
  cells: readonly PlacedCell[];
}): UsageOfKey[] {
  const bySegment = new Map(plan.segments.map((segment) => [Math.floor(segment.start_us / 1_000_000), segment]));
  const placed = cells.map((cell) => {
    const segment = bySegment.get(Math.floor(cell.segment_us / 1_000_000))!;
    return { ...cell, asked_us: segment.asked_us, own_us: plan.rows_are_windows ? cell.window_us : segment.own_us };
  });
  const byKey = grouped(placed, (cell) => cell.key);
  if (byKey.size === 0 && !asked.by_customer && !asked.key_of) byKey.set('', []);
  return [...byKey].map(([key, some]) => {
    const windows = asked.window_size === undefined ? [] : [...grouped(some, (cell) => cell.asked_us)];
    return {
      key,
      total: answerOf(meter, some, { start_us: asked.start_us, end_us: asked.end_us }),
      windows: windows
        .sort(([a], [b]) => a - b)
        .map(([start_us, inside]) => answerOf(meter, inside, windowRange(plan.segments, start_us))),
    };
  });
}

type OwnedCell = PlacedCell & { readonly asked_us: number; readonly own_us: number };

/** The total of a range is computed over all of it and never added up from windows: an average of averages is none. */
function answerOf(meter: CompiledMeter, cells: readonly OwnedCell[], range: { start_us: number; end_us: number }): WindowAnswer {
  const event_count = cells.reduce((count, cell) => count + cell.bucket.count, 0);
  const finish = (some: readonly OwnedCell[]) => valueOf(meter, some, range);
  if (meter.bucket_size === undefined) return { ...range, value: finish(cells), event_count, buckets: null };
  const buckets = [...grouped(cells, (cell) => cell.own_us)]
    .sort(([a], [b]) => a - b)
    .map(([, inside]) => [...grouped(inside, (cell) => cell.group_key).values()].map(finish));
  return { ...range, value: sumOf(buckets.flat()), event_count, buckets };
}

function valueOf(meter: CompiledMeter, cells: readonly OwnedCell[], range: { start_us: number; end_us: number }): Decimal {
  const merged = new UsageBucket();
  for (const cell of cells) merged.combine(cell.bucket);
  if (meter.aggregation.fills.includes('uniques') && cells.some((cell) => cell.unique_count >= 0)) {
    return uniquesOf(cells);
  }
  return meter.aggregation.finish(merged, { ...range, multiplier: meter.multiplier });
}

function uniquesOf(cells: readonly OwnedCell[]): Decimal {
  const counted = cells.filter((cell) => cell.unique_count > 0);
  // Over several segments this is no total; askUsage asks for that by itself.
  return new Decimal(counted.length > 1 ? Number.NaN : (counted[0]?.unique_count ?? 0));
}

function windowRange(segments: readonly Segment[], asked_us: number): { start_us: number; end_us: number } {
  const own = segments.filter((segment) => segment.asked_us === asked_us);
  return { start_us: own[0]!.start_us, end_us: own.at(-1)!.end_us };
}

function grouped<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** The instant before which everything durable in the log is in the stores. */
async function freshness(stores: Stores, nowMs: number): Promise<string> {
  const lag = await stores.log.lag();
  const oldest = lag.reduce((earliest, { oldest_unprocessed_at_us: at }) => Math.min(earliest, at ?? Infinity), nowMs * 1000);
  return formatTimestamp(oldest);
}
