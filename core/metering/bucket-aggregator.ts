/**
 * The hot path of the processor: contributions in, pre-aggregated rows out. Each base row belongs to one tenant,
 * environment, meter, customer, bucket start, group and slice. Days that already have daily rollups also get rows of the
 * UTC day (docs/decisions/0001). Equal contributions in equal order give equal rows in equal order, so a replayed slice
 * writes the same block.
 */
import type { Scope } from '../foundation/scope.ts';
import { type Microseconds, US_PER_DAY } from '../foundation/time/instant.ts';
import { type BucketFields, UsageBucket } from './bucket.ts';
import { type RowSize, rowStart } from './bucket-size.ts';
import type { CompiledMeter } from './compiled-meter.ts';
import type { Contribution } from './contribution.ts';

export type BucketRow = BucketFields & {
  readonly tenant_id: string;
  readonly environment_id: string;
  readonly meter_id: string;
  readonly external_customer_id: string;
  readonly size: RowSize;
  readonly bucket_start_us: Microseconds;
  readonly group_key: string;
  /** Times of the first and the last event of a base row; null if unknown, and for a daily rollup. */
  readonly first_us: Microseconds | null;
  readonly last_us: Microseconds | null;
  /** Adds the row to a bucket without converting its numbers to bigints. */
  addTo?(bucket: UsageBucket): void;
};

/** Buckets by customer number: the innermost map; most events need no other map. */
type CustomerBuckets = Map<number, UsageBucket>;

/** The buckets of one meter and group; consecutive events mostly fall into one row start. */
type BucketGroup = {
  readonly group_key: string;
  readonly starts: Map<number, CustomerBuckets>;
  lastStart: number;
  last: CustomerBuckets;
};

type MeterBuckets = {
  readonly scope: Scope;
  readonly meter: CompiledMeter;
  readonly groups: Map<string, BucketGroup>;
  lastGroup: BucketGroup | undefined;
};

export class BucketAggregator {
  private readonly tenants = new Map<string, Map<string, Map<string, MeterBuckets>>>();
  private lastScope: Scope | undefined;
  private lastMeters: Map<string, MeterBuckets> | undefined;
  /** Customers get consecutive numbers, because maps of small integers are several times faster than maps of texts. */
  private readonly customerNumbers = new Map<string, number>();
  private readonly customers: string[] = [];
  private lastCustomer = '';
  private lastNumber = 0;

  add(scope: Scope, meter: CompiledMeter, contribution: Contribution): void {
    const meters = scope === this.lastScope ? this.lastMeters! : this.ensureMeters(scope);
    let buckets = meters.get(meter.id);
    if (buckets === undefined)
      meters.set(meter.id, (buckets = { scope, meter, groups: new Map(), lastGroup: undefined }));
    const start = rowStart(contribution.event.timestamp_us, meter.base_size);
    const customers = customersAt(ensureGroup(buckets, contribution.group_key), start);
    const customer = this.ensureCustomerNumber(contribution.event.external_customer_id);
    let bucket = customers.get(customer);
    if (bucket === undefined) customers.set(customer, (bucket = new UsageBucket()));
    meter.aggregation.add(bucket, contribution);
    bucket.see(contribution.event.timestamp_us);
  }

  /**
   * Yields all base rows since the last drain in batches, because millions of rows take too long for one step. The
   * aggregator is empty after the last batch.
   */
  *drain(): Generator<BucketRow[]> {
    for (const environments of this.tenants.values()) {
      for (const meters of environments.values())
        for (const buckets of meters.values()) yield* buildRows(buckets, this.customers);
    }
    this.tenants.clear();
    this.customerNumbers.clear();
    this.customers.length = 0;
    this.lastScope = undefined;
    this.lastCustomer = '';
  }

  private ensureCustomerNumber(customer: string): number {
    if (customer === this.lastCustomer && this.customers.length > 0) return this.lastNumber;
    let number = this.customerNumbers.get(customer);
    if (number === undefined) {
      const copy = detached(customer);
      number = this.customers.push(copy) - 1;
      this.customerNumbers.set(copy, number);
    }
    this.lastCustomer = customer;
    this.lastNumber = number;
    return number;
  }

  private ensureMeters(scope: Scope): Map<string, MeterBuckets> {
    let environments = this.tenants.get(scope.tenant_id);
    if (environments === undefined) this.tenants.set(scope.tenant_id, (environments = new Map()));
    let meters = environments.get(scope.environment_id);
    if (meters === undefined) environments.set(scope.environment_id, (meters = new Map()));
    this.lastScope = scope;
    this.lastMeters = meters;
    return meters;
  }
}

/** A copy that does not reference the text of its batch. It lives longer than the batch and is a frequently used map key. */
function detached(text: string): string {
  return ` ${text}`.slice(1);
}

function ensureGroup(buckets: MeterBuckets, group_key: string): BucketGroup {
  const last = buckets.lastGroup;
  if (last !== undefined && last.group_key === group_key) return last;
  let group = buckets.groups.get(group_key);
  if (group === undefined) {
    // NaN stands for "no start yet", because it equals no start. A field that is always a number is faster, and every
    // event is compared with it.
    group = { group_key, starts: new Map(), lastStart: Number.NaN, last: new Map() };
    buckets.groups.set(group_key, group);
  }
  buckets.lastGroup = group;
  return group;
}

function customersAt(group: BucketGroup, start: number): CustomerBuckets {
  if (group.lastStart === start) return group.last;
  let customers = group.starts.get(start);
  if (customers === undefined) group.starts.set(start, (customers = new Map()));
  group.lastStart = start;
  group.last = customers;
  return customers;
}

const ROWS_AT_ONCE = 1_000;

function* buildRows(buckets: MeterBuckets, names: readonly string[]): Generator<BucketRow[]> {
  const size = buckets.meter.base_size;
  let rows: BucketRow[] = [];
  for (const { group_key, starts } of buckets.groups.values()) {
    for (const [start, customers] of starts) {
      for (const [customer, bucket] of customers) {
        rows.push(new LazyBucketRow(buckets, { group_key, customer: names[customer]!, size, start }, bucket));
        if (rows.length < ROWS_AT_ONCE) continue;
        yield rows;
        rows = [];
      }
    }
  }
  yield rows;
}

/** Adds the daily rollups to base rows, for days that have rollups. */
export function withDailyRollups(base: readonly BucketRow[], days_before: number): readonly BucketRow[] {
  const days = computeDailyRollups(base, days_before);
  return days.length === 0 ? base : [...base, ...days];
}

/** The additions of these base rows to the daily rollups of UTC days before `days_before` (days since 1970). */
export function computeDailyRollups(rows: readonly BucketRow[], days_before: number): BucketRow[] {
  const days = new Map<string, { row: BucketRow; start: number; bucket: UsageBucket }>();
  for (const row of rows) {
    if (row.bucket_start_us >= days_before * US_PER_DAY) continue;
    const start = rowStart(row.bucket_start_us, 'DAY');
    const { tenant_id, environment_id, meter_id, external_customer_id, group_key } = row;
    const key = JSON.stringify([tenant_id, environment_id, meter_id, external_customer_id, group_key, start]);
    const bucket = UsageBucket.of(row);
    const day = days.get(key);
    if (day === undefined) days.set(key, { row, start, bucket });
    else day.bucket.combine(bucket);
  }
  return [...days.values()].map(({ row, start, bucket }) => ({
    tenant_id: row.tenant_id,
    environment_id: row.environment_id,
    meter_id: row.meter_id,
    external_customer_id: row.external_customer_id,
    group_key: row.group_key,
    size: 'DAY',
    bucket_start_us: start,
    first_us: null,
    last_us: null,
    count: bucket.count,
    sum: bucket.sum,
    weighted_sum: bucket.weighted_sum,
    min: bucket.min,
    max: bucket.max,
    latest: bucket.latest,
    uniques: bucket.uniques,
  }));
}

type RowKey = {
  readonly group_key: string;
  readonly customer: string;
  readonly size: RowSize;
  readonly start: number;
};

/** Bucket row that reads its numbers from the bucket only when it is written. */
class LazyBucketRow implements BucketRow {
  readonly external_customer_id: string;
  readonly size: RowSize;
  readonly bucket_start_us: Microseconds;
  readonly group_key: string;
  private readonly buckets: MeterBuckets;
  private readonly bucket: UsageBucket;

  constructor(buckets: MeterBuckets, key: RowKey, bucket: UsageBucket) {
    this.buckets = buckets;
    this.external_customer_id = key.customer;
    this.size = key.size;
    this.bucket_start_us = key.start;
    this.group_key = key.group_key;
    this.bucket = bucket;
  }
  addTo(bucket: UsageBucket): void {
    bucket.combine(this.bucket);
  }
  get tenant_id(): string {
    return this.buckets.scope.tenant_id;
  }
  get environment_id(): string {
    return this.buckets.scope.environment_id;
  }
  get meter_id(): string {
    return this.buckets.meter.id;
  }
  get first_us(): number {
    return this.bucket.first_us;
  }
  get last_us(): number {
    return this.bucket.last_us;
  }
  get count(): number {
    return this.bucket.count;
  }
  get sum(): bigint {
    return this.bucket.sum;
  }
  get weighted_sum(): bigint {
    return this.bucket.weighted_sum;
  }
  get min(): bigint | null {
    return this.bucket.min;
  }
  get max(): bigint | null {
    return this.bucket.max;
  }
  get latest(): BucketFields['latest'] {
    return this.bucket.latest;
  }
  get uniques(): readonly string[] {
    return this.bucket.uniques;
  }
}
