/**
 * Usage of current periods, updated as slices commit (docs/decisions/0007-cached-answers.md). Each requested customer, meter and period is
 * a line, which is one merged bucket. The usage cache (usage-cache.ts) applies committed rows to the lines and clears them when it clears
 * itself. Watchers are notified when a line is no longer complete.
 */
import type { Decimal } from '../../core/foundation/decimal.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import { UsageBucket } from '../../core/metering/bucket.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import type { BucketRow } from '../../core/metering/plan.ts';
import { computeBucketValue, type PlacedCell } from '../../core/metering/usage.ts';
import type { SliceState } from '../progress/slice-state.ts';
import type { MeterUsageQuery } from './usage-query.ts';

/** Result of a usage query, and the progress of the stores at which it is valid, if known. */
export type UsageRead = Scope & {
  readonly query: MeterUsageQuery;
  readonly meter: CompiledMeter;
  readonly meter_version: number;
  /** Whether each slice with events of the meter adds rows. False while the meter is back-filled and after it was stopped. */
  readonly has_rows: boolean;
  readonly cells: readonly PlacedCell[];
  readonly progress: readonly SliceState[] | null;
};

export type LiveLineUsage = {
  readonly quantity: Decimal;
  readonly event_count: number;
  readonly integral?: Decimal | undefined;
};

/** Lines and watchers of one customer and meter. */
export type LiveUsageSubject = { readonly lines: LiveUsageLine[]; readonly watchers: Set<LiveUsageWatcher> };

export type LiveUsageWatcher = {
  /**
   * A row of the subject was committed. `first_us`: when its first event happened. `subject`: its lines show which have applied the row.
   */
  came(subject: LiveUsageSubject, first_us: Microseconds): void;
  /** The lines of the subject are no longer complete. */
  invalidate(): void;
};

/** All events of one customer and meter in a half-open time range, as one bucket. */
export class LiveUsageLine {
  readonly meter: CompiledMeter;
  readonly meter_version: number;
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly #bucket = new UsageBucket();
  /** The line may lack events of its range. */
  is_lost = false;
  /** Increases with each applied row. */
  changes = 0;
  watchers = 0;
  #answer: LiveLineUsage | null = null;

  constructor({ meter, meter_version, query, cells }: UsageRead) {
    this.meter = meter;
    this.meter_version = meter_version;
    this.start_us = query.start_us;
    this.end_us = query.end_us;
    for (const { bucket } of cells) this.#bucket.combine(bucket);
  }

  /**
   * Applies the committed row if it lies in the range. A row that crosses an end of the range cannot be divided, so the line becomes lost.
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

  get answer(): LiveLineUsage {
    this.#answer ??= {
      quantity: computeBucketValue(this.meter, this.#bucket, this),
      event_count: this.#bucket.count,
      integral: this.meter.aggregation.integrate?.(this.#bucket, this),
    };
    return this.#answer;
  }
}

/** Whether rows can update the value. Distinct values remain in the store, and a meter with its own windows has many buckets. */
function isRunning({ query, meter, has_rows }: UsageRead): boolean {
  const { external_customer_ids, clipped, window_size, definition, only, key_of, by_customer } = query;
  if (external_customer_ids?.length !== 1 || (clipped?.size ?? 0) > 0 || by_customer) return false;
  if (window_size !== undefined || definition || only || key_of) return false;
  return has_rows && meter.bucket_size === undefined && !meter.aggregation.fills.includes('uniques');
}

export class LiveUsage {
  readonly #subjects = new Map<string, Map<string, LiveUsageSubject>>();

  get isEmpty(): boolean {
    return this.#subjects.size === 0;
  }

  /** The watcher is notified of changes of the subject from now on. */
  watch(watcher: LiveUsageWatcher, meter_id: string, customer: string): LiveUsageSubject {
    let customers = this.#subjects.get(meter_id);
    if (customers === undefined) this.#subjects.set(meter_id, (customers = new Map()));
    let subject = customers.get(customer);
    if (subject === undefined) customers.set(customer, (subject = { lines: [], watchers: new Set() }));
    subject.watchers.add(watcher);
    return subject;
  }

  /** Line for the result of a query, all of it at the progress of the cache; null if rows cannot update it. */
  findLine(subject: LiveUsageSubject, read: UsageRead): LiveUsageLine | null {
    if (!isRunning(read)) return null;
    const { start_us, end_us } = read.query;
    const known = subject.lines.find((line) => line.start_us === start_us && line.end_us === end_us);
    if (known && !known.is_lost && known.meter_version === read.meter_version) return known;
    const line = new LiveUsageLine(read);
    subject.lines.push(line);
    return line;
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
      for (const line of subject.lines) line.take(row, version);
      for (const watcher of subject.watchers) watcher.came(subject, row.first_us ?? Number.NEGATIVE_INFINITY);
    }
  }

  /** The rows of these customers were rebuilt; null: all customers of the meter. */
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
  for (const line of subject.lines) line.is_lost = true;
  for (const watcher of [...subject.watchers]) watcher.invalidate();
}
