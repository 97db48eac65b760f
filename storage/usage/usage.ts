/**
 * The only entry to usage: preview, invoice, usage endpoints, analytics and audits read here, so that they cannot disagree
 * (docs/rules/usage.md, "One number"). The answer is computed from daily and base buckets, and from raw rows at unaligned edges. While a
 * meter's past is still being counted, it is computed from raw rows alone. Failures are thrown (docs/rules/usage.md, "Never a quiet zero").
 */

import type { Decimal } from '../../core/foundation/decimal.ts';
import { FarthingError, unavailable } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { formatUs, type Microseconds, type Milliseconds, toMs, toUs } from '../../core/foundation/time/instant.ts';
import {
  limitDailyRollups,
  planRawOnly,
  planSegments,
  type SegmentPlan,
} from '../../core/metering/analytics/segments.ts';
import { type CompiledMeter, compileMeter } from '../../core/metering/compiled-meter.ts';
import type { Meter } from '../../core/metering/meter/record.ts';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import {
  computeUsageByKey,
  type UsageByKey,
  type UsageCell,
  type Wants,
  type WindowAnswer,
} from '../../core/metering/usage.ts';
import { KeyedBatchLoader } from '../concurrency/batch-loader.ts';
import { runYielding } from '../concurrency/time-slicer.ts';
import { countRawEvents, type LogPosition, type PositionedRawEvent } from '../events/raw-events.ts';
import { toMonthStart } from '../events/tables.ts';
import type { Stores } from '../foundation/stores.ts';
import type { EventLog, PartitionLag } from '../log/log.ts';
import { loadClock } from '../models/schedule/environment-clock.ts';
import { currentRecorder } from '../postgres/interceptors/dependency-recorder.ts';
import { type PartitionProgress, toOffsetsText } from '../progress/partition-progress.ts';
import { type CurrentCounting, isSameCounter, loadCurrentCounting } from './counter.ts';
import type { UsageResult } from './live-usage.ts';
import { toRawEventsQuery, type UsageReadPlan } from './raw-cells.ts';
import { type Doubt, readConsistently, type Snapshot, type SnapshotRead } from './snapshot.ts';
import { type CellsRead, cacheRead, loadUsageCells } from './usage-cells.ts';
import { getUsageFeed } from './usage-feed.ts';
import { countAnswer } from './usage-metrics.ts';
import type { ClippedRanges, MeterUsageQuery } from './usage-query.ts';

export type UsageOfKey = {
  /** The customer with by_customer, the key with key_of, '' otherwise. */
  readonly key: string;
  readonly total: WindowAnswer;
  /** In chronological order, only windows with events; empty unless requested. */
  readonly windows: readonly WindowAnswer[];
};

export type UsageReport = {
  readonly usage: readonly UsageOfKey[];
  readonly as_of: string;
  readonly high_water: Readonly<Record<string, string>>;
  /** Version of the meter that counted; 0 for a definition that the query supplies. */
  readonly meter_version: number;
  /** Whether pre-aggregated rows answered, apart from unaligned edges. */
  readonly source: 'buckets' | 'raw';
};

export async function readUsageReport(stores: Stores, scope: Scope, query: MeterUsageQuery): Promise<UsageReport> {
  if (query.start_us > query.end_us) throw new FarthingError('internal_error', 'the usage range ends before it starts');
  currentRecorder()?.recordUsageQuery(scope.tenant_id, scope.environment_id, query);
  for (let tries = 0; tries < CHANGES_MAX; tries++) {
    // `as_of` is read before the progress, so that the answer is at least as fresh as `as_of`.
    const as_of = await loadFreshness(stores, scope, query.now_ms ?? Date.now());
    const report = await tryReadReport({
      stores,
      scope,
      query,
      counted_by: await loadCurrentCounting(stores, scope, query),
    });
    if (report) return { ...report, as_of };
  }
  throw unavailable(`usage of meter ${query.meter.id} (it is being changed again and again)`);
}

/** Maximum number of attempts if the meter changes during the query. */
const CHANGES_MAX = 20;

type UsageReadContext = { stores: Stores; scope: Scope; query: MeterUsageQuery; counted_by: CurrentCounting };

/** Reads once; null if the meter changed during the read. */
async function tryReadReport(context: UsageReadContext): Promise<Omit<UsageReport, 'as_of'> | null> {
  const counting = await buildCounting(context);
  const { parts, wants_raw } = counting;
  const { meter } = counting.read_plan;
  const answer = await readConsistently(buildSnapshotRead(context, counting));
  if (answer === null) return null;
  const { value: found, snapshot, unmoved_progress, valid_progress } = answer;
  countAnswer(wants_raw ? 'raw' : found.every(({ certainty }) => certainty !== 'open') ? 'memory' : 'rows');
  // The cache is fed up to this progress, because cached values that derive from this answer are updated from there.
  if (valid_progress && currentRecorder()) await getUsageFeed(context.stores.postgres)?.feedUntil(valid_progress);
  for (const { stored } of found) if (stored) cacheRead(context.stores, unmoved_progress, stored);
  recordRead(context, counting, { cells: found[0]!.cells, progress: valid_progress });
  const answers = await Promise.all(parts.map((part, index) => buildAnswer(meter, part, found[index]!.cells)));
  return {
    usage: listUsage(answers),
    high_water: toOffsetsText(snapshot.before),
    meter_version: context.counted_by.counter.version,
    source: wants_raw ? 'raw' : 'buckets',
  };
}

/** Records the read for the caches that derive answers from it (storage/cache). */
function recordRead(
  { scope, query, counted_by: { counter } }: UsageReadContext,
  { read_plan }: UsageCounting,
  read: Pick<UsageResult, 'cells' | 'progress'>,
): void {
  const { has_buckets } = counter;
  const adds_rows = has_buckets && counter.stop === undefined;
  currentRecorder()?.read({
    ...scope,
    query,
    meter: read_plan.meter,
    meter_version: counter.version,
    has_buckets,
    adds_rows,
    ...read,
  });
}

/** Meter definition that counts a query, and the parts into which the query is divided (`planParts`). */
type UsageCounting = {
  readonly read_plan: Omit<UsageReadPlan, 'query' | 'plan' | 'snapshot' | 'progress' | 'has_corrections'>;
  readonly parts: readonly UsagePart[];
  /** Whether raw rows answer the query, because no pre-aggregated rows exist for it. */
  readonly wants_raw: boolean;
};

async function buildCounting({
  stores,
  scope,
  query,
  counted_by: { counter },
}: UsageReadContext): Promise<UsageCounting> {
  const meter = compiled(counter.definition);
  return {
    read_plan: { stores, scope, meter, meter_version: counter.version, grid: toGrid(query), stop: counter.stop },
    parts: await planParts(meter, query),
    wants_raw: !counter.has_buckets || query.only !== undefined || query.key_of !== undefined,
  };
}

function buildSnapshotRead(
  { stores, scope, query, counted_by }: UsageReadContext,
  counting: UsageCounting,
): SnapshotRead<CellsRead[]> {
  const { read_plan, parts, wants_raw } = counting;
  const { counter } = counted_by;
  const read = (isRaw: boolean) => (snapshot: Snapshot, progress?: readonly PartitionProgress[]) =>
    Promise.all(
      parts.map((part) => {
        const plan = isRaw ? planRawOnly(part.plan, query) : limitDailyRollups(part.plan, snapshot.days_before);
        // The stop offsets of a stopped meter are read after the progress, so no cached rows of that progress may answer.
        const current_progress = counter.stop === undefined ? progress : undefined;
        return loadUsageCells({ ...read_plan, ...part, plan, snapshot, progress: current_progress, has_corrections });
      }),
    );
  let first: readonly PartitionProgress[] | null = counted_by.progress;
  // A correction after the snapshot rebuilds rows, and the read is then repeated.
  let { has_corrections } = counted_by;
  return {
    progress: async () => {
      const known = first;
      first = null;
      if (known) return known;
      const now = await loadCurrentCounting(stores, scope, query);
      has_corrections = now.has_corrections;
      return isSameCounter(counter, now.counter) ? now.progress : null;
    },
    read: read(wants_raw),
    deriveCertainty: ([first, ...others]) => (others.length === 0 ? first!.certainty : 'open'),
    readRaw: read(true),
    getRowsProgress: (found) => (parts.length === 1 ? found[0]!.progress : undefined),
    areRelevant: async (doubts, found) => !wants_raw && mayBeTorn(query, counting, { doubts, found }),
  };
}

type DoubtedRead = { readonly doubts: readonly Doubt[]; readonly found: readonly CellsRead[] };

/** Whether the slices in doubt have events of the query, which may be in the result fully, partly or not at all. */
async function mayBeTorn(
  query: MeterUsageQuery,
  { read_plan, parts }: UsageCounting,
  { doubts, found }: DoubtedRead,
): Promise<boolean> {
  if (doubts.some(({ is_wide }) => is_wide) && spansMonths(query)) return true;
  const [part] = parts;
  // The statements of several parts may see different slices, so an event anywhere in the range is relevant, not only at its edges.
  const { raw_ranges } = parts.length > 1 ? planRawOnly(part!.plan, query) : found[0]!;
  if (raw_ranges.length === 0) return false;
  const { log_positions } = found[0]!;
  if (log_positions && parts.length === 1)
    return log_positions.some((log_position) => doubts.some((doubt) => isDoubtedPosition(doubt, log_position)));
  const snapshot = { before: new Map(), days_before: 0 };
  const plan = { ...part!.plan, raw_ranges };
  const raw_query = {
    ...toRawEventsQuery({ ...read_plan, query, plan, snapshot, progress: undefined, has_corrections: true }),
    doubts,
  };
  return (await countRawEvents(read_plan.stores.clickhouse, raw_query)) > 0;
}

function isDoubtedPosition(doubt: Doubt, { partition, offset }: LogPosition): boolean {
  return partition === doubt.partition && offset >= doubt.from && offset < doubt.to;
}

function spansMonths({ start_us, end_us }: MeterUsageQuery): boolean {
  return toMonthStart(start_us) !== toMonthStart(end_us - 1);
}

type UsagePart = {
  readonly query: MeterUsageQuery;
  readonly plan: SegmentPlan;
  readonly wants: Wants;
};

/** Plans the parts of a query. Distinct counts of windows cannot be added, so their total needs a second part. */
async function planParts(meter: CompiledMeter, query: MeterUsageQuery): Promise<UsagePart[]> {
  const part = async (of: MeterUsageQuery, wantsTotal: boolean): Promise<UsagePart> => {
    const { start_us, end_us, window_size, windows_from_us, bounds } = of;
    const planning = planSegments(meter, { start_us, end_us, window_size, windows_from_us, grid: toGrid(of) });
    const plan = await runYielding(planning, bounds);
    return {
      query: of,
      plan,
      wants: {
        total: wantsTotal,
        windows: window_size !== undefined,
        running: of.running === true,
        running_values: of.running_values === true,
        every_window: of.every_window === true,
      },
    };
  };
  if (query.window_size === undefined || !meter.aggregation.fills.includes('uniques')) return [await part(query, true)];
  return [await part(query, false), await part({ ...query, window_size: undefined }, true)];
}

function buildAnswer(
  meter: CompiledMeter,
  { query, plan, wants }: UsagePart,
  cells: readonly UsageCell[],
): Promise<UsageByKey> {
  const { start_us, end_us, bounds } = query;
  // A query without keys has one answer, even if nothing was counted.
  const keys = query.by_customer || query.key_of ? [] : [''];
  return runYielding(computeUsageByKey({ meter, start_us, end_us, plan, cells, keys, wants }), bounds);
}

function listUsage(answers: readonly UsageByKey[]): UsageOfKey[] {
  const windows = new Map(answers.flatMap((answer) => [...answer.windows]));
  return answers.flatMap(({ totals }) =>
    [...totals].map(([key, total]) => ({ key, total, windows: windows.get(key) ?? [] })),
  );
}

function toGrid({ timezone, billing_anchor_ms }: MeterUsageQuery) {
  return { timezone: timezone ?? 'UTC', billing_anchor: billing_anchor_ms ?? null };
}

const COMPILED_MAX = 1_000;
const compiledMeters = new Map<string, CompiledMeter>();

/**
 * Compiles a definition once: parsing an expression costs more than answering a query from rows, and the same meters
 * are queried again.
 */
function compiled(definition: MeterDefinition): CompiledMeter {
  const key = JSON.stringify(definition);
  const known = compiledMeters.get(key);
  if (known) return known;
  const meter = compileMeter(definition);
  if (compiledMeters.size >= COMPILED_MAX) compiledMeters.clear();
  compiledMeters.set(key, meter);
  return meter;
}

/** Query of billing: a set of customers that counts as one, one range, and the meter's own buckets for prices that apply per bucket. */
export type BilledUsageQuery = {
  readonly meter: Pick<Meter, 'id'>;
  readonly external_customer_ids: readonly string[];
  readonly clipped?: ClippedRanges | undefined;
  readonly start_ms: Milliseconds;
  readonly end_ms: Milliseconds;
  /** IANA zone that aligns the meter's own buckets; UTC when absent. */
  readonly timezone?: string;
  readonly billing_anchor_ms?: Milliseconds;
  readonly now_ms?: Milliseconds;
  /** Stored event that is left out. */
  readonly without?: PositionedRawEvent | undefined;
};

export type BilledUsage = {
  /** The meter's value over the whole range, exact. It may be negative; billing floors the billed quantity. */
  readonly quantity: Decimal;
  readonly event_count: number;
  readonly buckets: readonly (readonly Decimal[])[] | null;
  /** Starts of `buckets`, in their order. */
  readonly bucket_starts: readonly Milliseconds[] | null;
  /** Units × microseconds until the end of the range, exact; only for a meter that integrates over time. */
  readonly integral?: Decimal | undefined;
  /** The answer includes everything that was durable in the log before this instant. */
  readonly as_of: string;
  /** Per partition, the exclusive end offset of the answer in the log. */
  readonly high_water: Readonly<Record<string, string>>;
  readonly meter_version: number;
};

export function toUsageQuery({ start_ms, end_ms, now_ms, ...query }: BilledUsageQuery) {
  const now = now_ms === undefined ? {} : { now_ms };
  return { ...query, start_us: toUs(start_ms), end_us: toUs(end_ms), ...now };
}

export async function readUsage(stores: Stores, scope: Scope, query: BilledUsageQuery): Promise<BilledUsage> {
  const report = await readUsageReport(stores, scope, toUsageQuery(query));
  const { total } = report.usage[0]!;
  const { as_of, high_water, meter_version } = report;
  return {
    quantity: total.value,
    event_count: total.event_count,
    buckets: total.buckets,
    bucket_starts: total.bucket_starts_us?.map(toMs) ?? null,
    integral: total.integral,
    as_of,
    high_water,
    meter_version,
  };
}

const LAG = new KeyedBatchLoader<EventLog, void, readonly PartitionLag[]>(async (log, query) => {
  const lag = await log.lag();
  return query.map(() => lag);
});

/** Whether the stores contain everything that arrived by this instant of the machine's clock. */
export async function isCountedUntil({ log }: Pick<Stores, 'log'>, at_us: Microseconds): Promise<boolean> {
  const lag = await LAG.load(log);
  return lag.every(({ oldest_unprocessed_at_us: oldest_us }) => oldest_us === null || oldest_us > at_us);
}

/** The instant by the machine's clock before which everything durable in the log is in the stores. */
export async function loadLogFreshness(log: EventLog, now_ms: Milliseconds): Promise<Microseconds> {
  const lag = await LAG.load(log);
  return Math.min(toUs(now_ms), ...lag.map(({ oldest_unprocessed_at_us: at }) => at ?? Number.POSITIVE_INFINITY));
}

/**
 * The instant before which everything durable in the log is in the stores. Times of an environment clock do not show when events arrived.
 * Such an environment is as fresh as its clock once the stores contain everything. While events since the last advance wait, it is a
 * millisecond older, and while earlier ones wait, as old as before the advance (docs/rules/clock.md, "Complete").
 */
export async function loadFreshness(stores: Stores, scope: Scope, nowMs: Milliseconds): Promise<string> {
  const read_us = toUs(Date.now());
  const [oldest_us, clock] = await Promise.all([
    loadLogFreshness(stores.log, Number.POSITIVE_INFINITY),
    loadClock(stores.postgres, scope),
  ]);
  if (!clock) return formatUs(Math.min(toUs(nowMs), oldest_us));
  const fresh_us = Math.max(read_us, toUs(clock.advanced_at_ms));
  // The events of other environments do not matter. A second query excludes them, and only while any event waits.
  const unprocessed_us = oldest_us > fresh_us ? oldest_us : await loadOwnFreshness(stores.log, scope, oldest_us);
  if (unprocessed_us > fresh_us) return formatUs(toUs(nowMs));
  const isEarlierThere = unprocessed_us > toUs(clock.advanced_at_ms);
  return formatUs(toUs(isEarlierThere ? nowMs - 1 : Math.min(nowMs, clock.advanced_from_ms)));
}

/** Receipt of the environment's oldest unprocessed record; that of any environment if the log cannot distinguish them. */
async function loadOwnFreshness(log: EventLog, scope: Scope, oldest_us: Microseconds): Promise<Microseconds> {
  if (!log.oldestUnprocessed) return oldest_us;
  return (await log.oldestUnprocessed(scope)) ?? Number.POSITIVE_INFINITY;
}
