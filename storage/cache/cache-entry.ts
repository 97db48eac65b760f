/** A cached answer (cached-answers.ts): its dependencies, and whether it is still valid. */
import type { Scope } from '../../core/foundation/scope.ts';
import { type Microseconds, type Milliseconds, toInstant, toUs } from '../../core/foundation/time/instant.ts';
import type { Period } from '../../core/foundation/time/period.ts';
import type { DependencyRecorder } from '../postgres/interceptors/dependency-recorder.ts';
import type { LiveUsageLine, LiveUsageSubject, LiveUsageWatcher, UsageRead } from '../usage/live-usage.ts';
import type { BilledUsage } from '../usage/usage.ts';
import type { UsageCache } from '../usage/usage-cache.ts';
import type { MeterUsageQuery } from '../usage/usage-query.ts';
import { countRunning } from './cache-metrics.ts';
import type { ChangeSnapshot } from './change-feed.ts';
import { internId } from './shared-value.ts';

/** Usage of a meter in a window from the cached lines, in the form that an invoice uses; throws `NotCached` if it was not read before. */
export type ReadCached = (meter_id: string, window: Period) => BilledUsage;

export type ComputedAnswer<Answer> = {
  readonly answer: Answer;
  /** Computes the answer again from current usage. If absent, new usage invalidates the answer. */
  again?(read: ReadCached): Answer;
  /** Earlier usage is not in the lines that `again` reads, but may affect the answer. */
  readonly late_before_ms?: Milliseconds;
  /** End of validity, even if no record changes. */
  readonly until_ms?: Milliseconds;
};

/** The requested usage is not among the recorded reads. */
export class NotCached extends Error {}

const NOBODY: ReadonlySet<LiveUsageSubject> = new Set();

/** Prefixes of record ids whose changes are recorded (sql/postgres/0170-record-changes.sql). */
const TRACKED_ID = /^(cust|subs|plan|price|meter|feat|addon|coupon|group|env)_[0-9A-Z]{26}$/;
const INSTANT = /^\d{4}-\d{2}-\d{2}T/;
/** Columns that contain the tenant's id or user-supplied text. */
const NO_RECORDS = new Set(['tenant_id', 'external_id', 'external_customer_id', 'lookup_key']);

type CacheEntryInput = {
  readonly scope: Scope;
  readonly key: string;
  readonly snapshot: ChangeSnapshot;
  readonly now: Date;
  readonly about: readonly string[];
};

type CachedUsageRead = {
  readonly subject: LiveUsageSubject;
  readonly line: LiveUsageLine | null;
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
  readonly #since_ms: Milliseconds;
  /** Latest change snapshot that was checked without finding a change of the records. */
  #checked = 0;
  #until_ms = Number.POSITIVE_INFINITY;
  #records: Set<string> | string[];
  #watched: { meter_id: string; customer: string; subject: LiveUsageSubject }[] = [];
  #reads: CachedUsageRead[] = [];
  #earliest_us = Number.POSITIVE_INFINITY;
  #late_before_us = Number.NEGATIVE_INFINITY;
  /** Subjects with rows that arrived during the computation. */
  #came: Set<LiveUsageSubject> | null = null;
  #made: ComputedAnswer<unknown> | null = null;
  #answer: unknown;
  #changes = 0;
  #isLost = false;
  /** Subjects with reads that no line updates; set at completion, because every row of the pipeline is checked against it. */
  #fixed: Set<LiveUsageSubject> | null = null;
  #isAllFixed = false;

  constructor({ scope, key, snapshot, now, about }: CacheEntryInput, memory: UsageCache) {
    this.scope = scope;
    this.tenant_id = scope.tenant_id;
    this.key = key;
    this.#memory = memory;
    this.#snapshot_number = snapshot.number;
    this.#since_ms = now.getTime();
    this.#records = new Set(about);
  }

  row(row: Readonly<Record<string, unknown>>): void {
    const records = this.#records as Set<string>;
    for (const name in row) {
      const value = row[name];
      if (typeof value !== 'string') continue;
      if (INSTANT.test(value)) this.#comes(value);
      else if ((name === 'id' || name.endsWith('_id')) && !NO_RECORDS.has(name) && TRACKED_ID.test(value))
        records.add(value);
    }
  }

  #comes(text: string): void {
    const at_ms = toInstant(text);
    if (at_ms > this.#since_ms && at_ms < this.#until_ms) this.#until_ms = at_ms;
  }

  recordUsageQuery(
    _tenant_id: string,
    _environment_id: string,
    { meter, external_customer_ids, end_us }: MeterUsageQuery,
  ): void {
    (this.#records as Set<string>).add(meter.id);
    // A range that ends now ends elsewhere a moment later.
    if (external_customer_ids === null || end_us === toUs(this.#since_ms)) this.#isLost = true;
    this.#watch(meter.id, external_customer_ids ?? []);
  }

  #watch(meter_id: string, customers: readonly string[]): void {
    for (const customer of customers) {
      if (this.#watched.some((one) => one.meter_id === meter_id && one.customer === customer)) continue;
      this.#watched.push({ meter_id, customer, subject: this.#memory.running.watch(this, meter_id, customer) });
    }
  }

  read(read: UsageRead): void {
    const customers = read.query.external_customer_ids ?? [];
    this.#watch(read.query.meter.id, customers);
    for (const customer of customers) {
      const { subject } = this.#watched.find(
        (one) => one.meter_id === read.query.meter.id && one.customer === customer,
      )!;
      const isAt = read.progress !== null && this.#memory.isAt(read.progress);
      const line = isAt ? this.#memory.running.findLine(subject, read) : null;
      if (line) line.watchers++;
      const { meter, start_us, end_us } = read.query;
      this.#reads.push({ subject, line, meter_id: meter.id, start_us, end_us });
    }
  }

  /** The lines of the subject have already applied the row. */
  came(subject: LiveUsageSubject, first_us: Microseconds): void {
    if (this.#made === null) {
      this.#earliest_us = Math.min(this.#earliest_us, first_us);
      (this.#came ??= new Set()).add(subject);
    } else if (first_us < this.#late_before_us || this.#isAllFixed || this.#fixed?.has(subject)) this.#isLost = true;
  }

  invalidate(): void {
    this.#isLost = true;
  }

  /** Whether the entry may be cached. */
  complete(made: ComputedAnswer<unknown>): boolean {
    this.#late_before_us = made.late_before_ms === undefined ? Number.NEGATIVE_INFINITY : toUs(made.late_before_ms);
    this.#until_ms = Math.min(this.#until_ms, made.until_ms ?? Number.POSITIVE_INFINITY);
    this.#made = made;
    this.#answer = made.answer;
    // A period that is over is read again if late usage arrives for it.
    this.#leaveLines(({ end_us }) => end_us <= this.#late_before_us);
    const came = this.#came ?? NOBODY;
    this.#came = null;
    this.#records = [...this.#records].map(internId);
    if (this.#earliest_us < this.#late_before_us) return false;
    this.#isAllFixed = made.again === undefined;
    const fixed = this.#reads.flatMap(({ subject, line }) => (line === null ? subject : []));
    if (fixed.length > 0) this.#fixed = new Set(fixed);
    if (this.#isLost || [...came].some((subject) => this.#isAllFixed || this.#fixed?.has(subject))) return false;
    // Usage that arrived between two reads is in the lines, but not in the answer.
    this.#changes = came.size > 0 ? -1 : this.#changesOfLines();
    return true;
  }

  isValidAt(now_ms: Milliseconds): boolean {
    return now_ms >= this.#since_ms && now_ms < this.#until_ms;
  }

  isOver(now_ms: Milliseconds): boolean {
    return now_ms >= this.#until_ms;
  }

  isFresh(snapshot: ChangeSnapshot, now_ms: Milliseconds): boolean {
    if (this.#isLost || !this.isValidAt(now_ms)) return false;
    if (this.#snapshot_number < snapshot.known_since) return false;
    if (this.#checked < snapshot.last_change) {
      for (const id of this.#records) if ((snapshot.changed.get(id) ?? 0) > this.#snapshot_number) return false;
      this.#checked = snapshot.number;
    }
    return !this.#reads.some(({ line }) => line?.is_lost);
  }

  get last(): unknown {
    return this.#answer;
  }

  /** Throws `NotCached`. */
  current(): unknown {
    const changes = this.#changesOfLines();
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

  /** The meter and window do not identify the customer: if several customers match, the usage is not read from the cache. */
  #readCached(meter_id: string, { start, end }: Period): BilledUsage {
    const [start_us, end_us] = [toUs(start), toUs(end)];
    const fits = this.#reads.filter(
      (read) => read.meter_id === meter_id && read.start_us === start_us && read.end_us === end_us,
    );
    const [first] = fits;
    if (!first?.line || fits.some(({ subject }) => subject !== first.subject)) throw new NotCached();
    return {
      ...first.line.answer,
      buckets: null,
      bucket_starts: null,
      as_of: NOWHERE.as_of,
      high_water: NOWHERE.high_water,
      meter_version: first.line.meter_version,
    };
  }

  #changesOfLines(): number {
    let changes = 0;
    for (const { line } of this.#reads) changes += line?.changes ?? 0;
    return changes;
  }

  end(): void {
    this.#isLost = true;
    this.#leaveLines(() => true);
    for (const one of this.#watched) this.#memory.running.leave(this, one);
    this.#watched = [];
  }

  #leaveLines(isLeft: (read: CachedUsageRead) => boolean): void {
    for (const read of this.#reads.filter(isLeft)) if (read.line) leaveLine(read.subject, read.line);
    this.#reads = this.#reads.filter((read) => !isLeft(read));
  }

  /** Lines of the entry with their customers, for the audit. */
  get lines(): { meter_id: string; customer: string; line: LiveUsageLine }[] {
    return this.#watched.flatMap(({ meter_id, customer, subject }) =>
      this.#reads.flatMap((read) =>
        read.subject === subject && read.line ? [{ meter_id, customer, line: read.line }] : [],
      ),
    );
  }
}

function leaveLine({ lines }: LiveUsageSubject, line: LiveUsageLine): void {
  if (--line.watchers === 0) lines.splice(lines.indexOf(line), 1);
}

/** Placeholders for proof fields that only invoices need; no cached answer shows them. */
const NOWHERE = { as_of: '', high_water: {} };
