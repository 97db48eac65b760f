/**
 * Usage of current periods, updated as slices commit (docs/decisions/0007-cached-answers.md). Each requested customer, meter and period
 * has one merged bucket. The usage cache (usage-cache.ts) applies committed rows to the periods and clears them when it clears itself.
 * Watchers are notified when a period is no longer complete.
 */
import type { Decimal } from '../../core/foundation/decimal.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import { UsageBucket } from '../../core/metering/bucket.ts';
import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import { computeBucketValue, type UsageCell } from '../../core/metering/usage.ts';
import type { PartitionProgress } from '../progress/partition-progress.ts';
import type { MeterUsageQuery } from './usage-query.ts';

/** Result of a usage query, and the progress of the stores at which it is valid, if known. */
export type UsageResult = Scope & {
  readonly query: MeterUsageQuery;
  readonly meter: CompiledMeter;
  readonly meter_version: number;
  /** Whether pre-aggregated rows exist. If not, new events change the result without adding rows. */
  readonly has_buckets: boolean;
  /** Whether each slice with events of the meter adds rows. False while the meter is back-filled and after it was stopped. */
  readonly adds_rows: boolean;
  readonly cells: readonly UsageCell[];
  readonly progress: readonly PartitionProgress[] | null;
};

export type LivePeriodUsage = {
  readonly quantity: Decimal;
  readonly event_count: number;
  readonly integral?: Decimal | undefined;
};

/** Periods and watchers of one customer and meter. */
export type LiveUsageSubject = { readonly periods: LiveUsagePeriod[]; readonly watchers: Set<LiveUsageWatcher> };

export type LiveUsageWatcher = {
  /**
   * Called when a row of the subject was committed. `first_us` is the time of its first event. The periods of `subject`
   * show which of them have applied the row.
   */
  onRow(subject: LiveUsageSubject, first_us: Microseconds): void;
  /** Called when the periods of the subject are no longer complete. */
  invalidate(): void;
};

/** All events of one customer and meter in a half-open time range, as one bucket. */
export class LiveUsagePeriod {
  readonly meter: CompiledMeter;
  readonly meter_version: number;
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly #bucket = new UsageBucket();
  /** True if the period may lack events of its range. */
  is_lost = false;
  /** Increases with each applied row. */
  changes = 0;
  watchers = 0;
  #answer: LivePeriodUsage | null = null;

  constructor({ meter, meter_version, query, cells }: UsageResult) {
    this.meter = meter;
    this.meter_version = meter_version;
    this.start_us = query.start_us;
    this.end_us = query.end_us;
    for (const { bucket } of cells) this.#bucket.combine(bucket);
  }

  /**
   * Applies the committed row if it lies in the range. A row that crosses an end of the range cannot be divided; the period is then lost.
   */
  take(row: BucketRow, version: number): void {
    const first_us = row.first_us ?? Number.NEGATIVE_INFINITY;
    const last_us = row.last_us ?? Number.POSITIVE_INFINITY;
    if (first_us >= this.end_us || last_us < this.start_us) return;
    if (version !== this.meter_version || first_us < this.start_us || last_us >= this.end_us) {
      this.is_lost = true;
      return;
    }
    if (row.addTo) row.addTo(this.#bucket);
    else this.#bucket.combine(UsageBucket.of(row));
    this.#answer = null;
    this.changes++;
  }

  get answer(): LivePeriodUsage {
    this.#answer ??= {
      quantity: computeBucketValue(this.meter, this.#bucket, this),
      event_count: this.#bucket.count,
      integral: this.meter.aggregation.integrate?.(this.#bucket, this),
    };
    return this.#answer;
  }
}

/** Whether rows can update the value. Distinct values remain in the store, and a meter with its own windows has many buckets. */
function isRunning({ query, meter, adds_rows }: UsageResult): boolean {
  const { external_customer_ids, clipped, window_size, definition, only, key_of, by_customer } = query;
  if (external_customer_ids?.length !== 1 || (clipped?.size ?? 0) > 0 || by_customer) return false;
  if (window_size !== undefined || definition || only || key_of) return false;
  return adds_rows && meter.bucket_size === undefined && !meter.aggregation.fills.includes('uniques');
}

export class LiveUsage {
  readonly #subjects = new Map<string, Map<string, LiveUsageSubject>>();

  get isEmpty(): boolean {
    return this.#subjects.size === 0;
  }

  /** Notifies the watcher of changes of the subject from now on. */
  watch(watcher: LiveUsageWatcher, meter_id: string, customer: string): LiveUsageSubject {
    let customers = this.#subjects.get(meter_id);
    if (customers === undefined) this.#subjects.set(meter_id, (customers = new Map()));
    let subject = customers.get(customer);
    if (subject === undefined) customers.set(customer, (subject = { periods: [], watchers: new Set() }));
    subject.watchers.add(watcher);
    return subject;
  }

  /**
   * Finds or creates the live period for the result of a usage query; null if new bucket rows cannot update such a result. The caller must
   * first check that the usage cache has applied exactly the slices that the result includes.
   */
  findPeriod(subject: LiveUsageSubject, read: UsageResult): LiveUsagePeriod | null {
    if (!isRunning(read)) return null;
    const { start_us, end_us } = read.query;
    const known = subject.periods.find((period) => period.start_us === start_us && period.end_us === end_us);
    if (known && !known.is_lost && known.meter_version === read.meter_version) return known;
    const period = new LiveUsagePeriod(read);
    subject.periods.push(period);
    return period;
  }

  leave(watcher: LiveUsageWatcher, { meter_id, customer }: { meter_id: string; customer: string }): void {
    const customers = this.#subjects.get(meter_id);
    const subject = customers?.get(customer);
    if (!customers || !subject?.watchers.delete(watcher)) return;
    if (subject.watchers.size > 0) return;
    customers.delete(customer);
    if (customers.size === 0) this.#subjects.delete(meter_id);
  }

  /** Applies the rows of a committed slice. */
  take(rows: readonly BucketRow[], getVersion: (meter_id: string) => number): void {
    if (this.#subjects.size === 0) return;
    let meter_id: string | null = null;
    let customers: Map<string, LiveUsageSubject> | undefined;
    let version = 0;
    for (const row of rows) {
      // Rows arrive grouped by meter.
      if (row.meter_id !== meter_id) {
        meter_id = row.meter_id;
        customers = this.#subjects.get(meter_id);
        if (customers !== undefined) version = getVersion(meter_id);
      }
      const subject = customers?.get(row.external_customer_id);
      if (subject === undefined) continue;
      for (const period of subject.periods) period.take(row, version);
      for (const watcher of subject.watchers) watcher.onRow(subject, row.first_us ?? Number.NEGATIVE_INFINITY);
    }
  }

  /** Handles a rebuild of the rows of these customers; null: all customers of the meter. */
  rebuilt(touched: ReadonlyMap<string, ReadonlySet<string> | null>): void {
    for (const [meter_id, those] of touched) {
      const customers = this.#subjects.get(meter_id);
      if (!customers) continue;
      for (const customer of those ?? customers.keys()) {
        const subject = customers.get(customer);
        if (subject) lose(subject);
      }
    }
  }

  clear(): void {
    const all = [...this.#subjects.values()];
    this.#subjects.clear();
    for (const customers of all) for (const subject of customers.values()) lose(subject);
  }
}

function lose(subject: LiveUsageSubject): void {
  for (const period of subject.periods) period.is_lost = true;
  for (const watcher of [...subject.watchers]) watcher.invalidate();
}
