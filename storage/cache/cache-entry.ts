/** A cached answer (cached-answers.ts): its dependencies, and whether it is still valid. */
import type { Scope } from '../../core/foundation/scope.ts';
import { type Microseconds, type Milliseconds, toInstant, toUs } from '../../core/foundation/time/instant.ts';
import type { Period } from '../../core/foundation/time/period.ts';
import type { DependencyRecorder } from '../postgres/interceptors/dependency-recorder.ts';
import type { LiveUsagePeriod, LiveUsageSubject, LiveUsageWatcher, UsageResult } from '../usage/live-usage.ts';
import type { BilledUsage } from '../usage/usage.ts';
import type { UsageCache } from '../usage/usage-cache.ts';
import type { MeterUsageQuery } from '../usage/usage-query.ts';
import { countRunning } from './cache-metrics.ts';
import type { ChangeSnapshot } from './change-feed.ts';
import { isRecordId, listRecordIds } from './record-ids.ts';
import { internId } from './shared-value.ts';

/** Usage of a meter in a window from the cached periods, in the form that an invoice uses; throws `NotCached` if it was not read before. */
export type ReadCached = (meter_id: string, window: Period) => BilledUsage;

export type ComputedAnswer<Answer> = {
  readonly answer: Answer;
  /** Computes the answer again from current usage. If absent, new usage invalidates the answer. */
  again?(read: ReadCached): Answer;
  /** New usage before this instant invalidates the answer: it may affect the answer, but `again` does not read it. */
  readonly late_before_ms?: Milliseconds;
  /** End of validity, even if no record changes. */
  readonly until_ms?: Milliseconds;
};

/** Thrown if the requested usage was not read when the entry was computed. */
export class NotCached extends Error {}

const NOBODY: ReadonlySet<LiveUsageSubject> = new Set();

const SUBJECT_ID = /^(cust|subs)_/;
const INSTANT = /^\d{4}-\d{2}-\d{2}T/;

type CacheEntryInput = {
  readonly scope: Scope;
  readonly key: string;
  readonly snapshot: ChangeSnapshot;
  readonly now: Date;
};

type CachedUsageRead = {
  readonly subject: LiveUsageSubject;
  readonly period: LiveUsagePeriod | null;
  readonly meter_id: string;
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
};

export class CacheEntry implements DependencyRecorder, LiveUsageWatcher {
  readonly scope: Scope;
  readonly tenant_id: string;
  readonly key: string;
  readonly #memory: UsageCache;
  readonly #snapshot_number: number;
  /** Moves of the usage cache before the answer was computed. */
  readonly #moves: number;
  /** Instant at which the answer was computed. */
  readonly since_ms: Milliseconds;
  /** Latest change snapshot that was checked without finding a change of the records. */
  #checked = 0;
  #until_ms = Number.POSITIVE_INFINITY;
  #records: Set<string> | string[];
  #watched: { meter_id: string; customer: string; subject: LiveUsageSubject }[] = [];
  #reads: CachedUsageRead[] = [];
  #earliest_us = Number.POSITIVE_INFINITY;
  #late_before_us = Number.NEGATIVE_INFINITY;
  /** Customers and meters for which new rows arrived while the answer was computed. */
  #came: Set<LiveUsageSubject> | null = null;
  #made: ComputedAnswer<unknown> | null = null;
  #answer: unknown;
  #changes = 0;
  #isLost = false;
  /**
   * Whether the answer contains raw events of a meter that has no bucket rows yet, so that any progress of the stores may change it.
   */
  #hasRawUsage = false;
  /**
   * Customers and meters whose usage the answer contains in a form that new rows cannot update. Set at completion, because every row of the
   * pipeline is checked against it.
   */
  #fixed: Set<LiveUsageSubject> | null = null;
  #isAllFixed = false;

  constructor({ scope, key, snapshot, now }: CacheEntryInput, memory: UsageCache) {
    this.scope = scope;
    this.tenant_id = scope.tenant_id;
    this.key = key;
    this.#memory = memory;
    this.#moves = memory.moves;
    this.#snapshot_number = snapshot.number;
    this.since_ms = now.getTime();
    // The answer depends on the records that its key names, even if none of their rows is read.
    this.#records = new Set(listRecordIds(key));
  }

  row(row: Readonly<Record<string, unknown>>): void {
    const records = this.#records as Set<string>;
    for (const name in row) {
      const value = row[name];
      if (typeof value !== 'string') continue;
      if (INSTANT.test(value)) this.#comes(value);
      else if (isRecordId(name, value)) records.add(value);
    }
  }

  /** Customers and subscriptions that the computation has read so far. */
  get subjects(): string[] {
    return [...this.#records].filter((id) => SUBJECT_ID.test(id));
  }

  #comes(text: string): void {
    const at_ms = toInstant(text);
    if (at_ms > this.since_ms && at_ms < this.#until_ms) this.#until_ms = at_ms;
  }

  recordUsageQuery(
    _tenant_id: string,
    _environment_id: string,
    { meter, external_customer_ids, end_us }: MeterUsageQuery,
  ): void {
    (this.#records as Set<string>).add(meter.id);
    // A range that ends now has another end a moment later, so the answer cannot be cached.
    if (external_customer_ids === null || end_us === toUs(this.since_ms)) this.#isLost = true;
    this.#watch(meter.id, external_customer_ids ?? []);
  }

  #watch(meter_id: string, customers: readonly string[]): void {
    for (const customer of customers) {
      if (this.#watched.some((one) => one.meter_id === meter_id && one.customer === customer)) continue;
      this.#watched.push({ meter_id, customer, subject: this.#memory.running.watch(this, meter_id, customer) });
    }
  }

  read(read: UsageResult): void {
    if (!read.has_buckets) this.#hasRawUsage = true;
    const customers = read.query.external_customer_ids ?? [];
    this.#watch(read.query.meter.id, customers);
    for (const customer of customers) {
      const { subject } = this.#watched.find(
        (one) => one.meter_id === read.query.meter.id && one.customer === customer,
      )!;
      const isAt = read.progress !== null && this.#memory.isAt(read.progress);
      const period = isAt ? this.#memory.running.findPeriod(subject, read) : null;
      if (period) period.watchers++;
      const { meter, start_us, end_us } = read.query;
      this.#reads.push({ subject, period, meter_id: meter.id, start_us, end_us });
    }
  }

  /** Processes a new bucket row. The cached periods of the subject have already applied the row. */
  onRow(subject: LiveUsageSubject, first_us: Microseconds): void {
    if (this.#made === null) {
      this.#earliest_us = Math.min(this.#earliest_us, first_us);
      (this.#came ??= new Set()).add(subject);
    } else if (first_us < this.#late_before_us || this.#isAllFixed || this.#fixed?.has(subject)) this.#isLost = true;
  }

  invalidate(): void {
    this.#isLost = true;
  }

  /** Stores the computed answer in the entry; returns whether the entry may be cached. */
  complete(made: ComputedAnswer<unknown>): boolean {
    this.#late_before_us = made.late_before_ms === undefined ? Number.NEGATIVE_INFINITY : toUs(made.late_before_ms);
    this.#until_ms = Math.min(this.#until_ms, made.until_ms ?? Number.POSITIVE_INFINITY);
    this.#made = made;
    this.#answer = made.answer;
    // Periods that ended by then need no updates: late usage in them invalidates the answer.
    this.#leavePeriods(({ end_us }) => end_us <= this.#late_before_us);
    const came = this.#came ?? NOBODY;
    this.#came = null;
    this.#records = [...this.#records].map(internId);
    if (this.#earliest_us < this.#late_before_us) return false;
    this.#isAllFixed = made.again === undefined;
    const fixed = this.#reads.flatMap(({ subject, period }) => (period === null ? subject : []));
    if (fixed.length > 0) this.#fixed = new Set(fixed);
    if (this.#isLost || [...came].some((subject) => this.#isAllFixed || this.#fixed?.has(subject))) return false;
    // If usage arrived between two reads, it is in the periods but not in the answer, so the answer must be computed again.
    this.#changes = came.size > 0 ? -1 : this.#sumChanges();
    return true;
  }

  isValidAt(now_ms: Milliseconds): boolean {
    return now_ms >= this.since_ms && now_ms < this.#until_ms;
  }

  isOver(now_ms: Milliseconds): boolean {
    return now_ms >= this.#until_ms;
  }

  isFresh(snapshot: ChangeSnapshot, now_ms: Milliseconds): boolean {
    if (this.#isLost || !this.isValidAt(now_ms)) return false;
    if (this.#snapshot_number < snapshot.known_since) return false;
    if (this.#hasRawUsage && this.#memory.moves > this.#moves) return false;
    if (this.#checked < snapshot.last_change) {
      for (const id of this.#records) if ((snapshot.changed.get(id) ?? 0) > this.#snapshot_number) return false;
      this.#checked = snapshot.number;
    }
    return !this.#reads.some(({ period }) => period?.is_lost);
  }

  /** Computes the current answer from the cached one and new usage; throws `NotCached` if that is impossible. */
  current(): unknown {
    const changes = this.#sumChanges();
    if (changes === this.#changes) {
      countRunning('cached');
      return this.#answer;
    }
    const again = this.#made?.again;
    if (again === undefined) throw new NotCached();
    this.#answer = again((meter_id, window) => this.#readCached(meter_id, window));
    this.#changes = changes;
    countRunning('arrived');
    return this.#answer;
  }

  /**
   * Reads usage from the cached periods. Meter and window do not identify the customer: if several customers match, it throws `NotCached`.
   */
  #readCached(meter_id: string, { start, end }: Period): BilledUsage {
    const [start_us, end_us] = [toUs(start), toUs(end)];
    const fits = this.#reads.filter(
      (read) => read.meter_id === meter_id && read.start_us === start_us && read.end_us === end_us,
    );
    const [first] = fits;
    if (!first?.period || fits.some(({ subject }) => subject !== first.subject)) throw new NotCached();
    return {
      ...first.period.answer,
      buckets: null,
      bucket_starts: null,
      as_of: NOWHERE.as_of,
      high_water: NOWHERE.high_water,
      meter_version: first.period.meter_version,
    };
  }

  #sumChanges(): number {
    let changes = 0;
    for (const { period } of this.#reads) changes += period?.changes ?? 0;
    return changes;
  }

  end(): void {
    this.#isLost = true;
    this.#leavePeriods(() => true);
    for (const one of this.#watched) this.#memory.running.leave(this, one);
    this.#watched = [];
  }

  #leavePeriods(isLeft: (read: CachedUsageRead) => boolean): void {
    for (const read of this.#reads.filter(isLeft)) if (read.period) leavePeriod(read.subject, read.period);
    this.#reads = this.#reads.filter((read) => !isLeft(read));
  }

  /** Periods of the entry with their customers, for the audit. */
  get periods(): { meter_id: string; customer: string; period: LiveUsagePeriod }[] {
    return this.#watched.flatMap(({ meter_id, customer, subject }) =>
      this.#reads.flatMap((read) =>
        read.subject === subject && read.period ? [{ meter_id, customer, period: read.period }] : [],
      ),
    );
  }
}

function leavePeriod({ periods }: LiveUsageSubject, period: LiveUsagePeriod): void {
  if (--period.watchers === 0) periods.splice(periods.indexOf(period), 1);
}

/** Placeholders for proof fields that only invoices need; no cached answer shows them. */
const NOWHERE = { as_of: '', high_water: {} };
