/**
 * The hot path of the processor: contributions in, pre-aggregated rows out. "One row per (tenant, environment, meter,
 * customer, bucket start, group) and slice", of the base size and of the UTC day. The same contributions in the same
 * order give the same rows in the same order, so that a replayed slice writes the same block.
 */
import type { Scope } from '../scope.ts';
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
  readonly bucket_start_us: number;
  readonly group_key: string;
};

/** Buckets by customer: the innermost map, which most events hit without looking at any other. */
type Customers = Map<string, UsageBucket>;

/** The buckets of one meter and group; consecutive events mostly fall into the same row of time. */
type Group = {
  readonly group_key: string;
  readonly starts: Map<number, Customers>;
  lastStart: number;
  last: Customers;
};

type MeterBuckets = {
  readonly scope: Scope;
  readonly meter: CompiledMeter;
  readonly groups: Map<string, Group>;
  lastGroup: Group | undefined;
};

export class BucketAggregator {
  private readonly tenants = new Map<string, Map<string, Map<string, MeterBuckets>>>();
  private lastScope: Scope | undefined;
  private lastMeters: Map<string, MeterBuckets> | undefined;

  add(scope: Scope, meter: CompiledMeter, contribution: Contribution): void {
    const meters = scope === this.lastScope ? this.lastMeters! : this.metersOf(scope);
    let buckets = meters.get(meter.id);
    if (buckets === undefined)
      meters.set(meter.id, (buckets = { scope, meter, groups: new Map(), lastGroup: undefined }));
    const start = rowStart(contribution.timestamp_us, meter.base_size);
    const customers = customersAt(groupOf(buckets, contribution.group_key), start);
    let bucket = customers.get(contribution.external_customer_id);
    if (bucket === undefined) customers.set(contribution.external_customer_id, (bucket = new UsageBucket()));
    meter.aggregation.add(bucket, contribution);
  }

  /** All rows since the last drain, base rows of a meter before its day rows; the aggregator is empty again. */
  drain(): BucketRow[] {
    const rows: BucketRow[] = [];
    for (const environments of this.tenants.values()) {
      for (const meters of environments.values()) for (const buckets of meters.values()) appendRows(rows, buckets);
    }
    this.tenants.clear();
    this.lastScope = undefined;
    return rows;
  }

  private metersOf(scope: Scope): Map<string, MeterBuckets> {
    let environments = this.tenants.get(scope.tenant_id);
    if (environments === undefined) this.tenants.set(scope.tenant_id, (environments = new Map()));
    let meters = environments.get(scope.environment_id);
    if (meters === undefined) environments.set(scope.environment_id, (meters = new Map()));
    this.lastScope = scope;
    this.lastMeters = meters;
    return meters;
  }
}

function groupOf(buckets: MeterBuckets, group_key: string): Group {
  const last = buckets.lastGroup;
  if (last !== undefined && last.group_key === group_key) return last;
  let group = buckets.groups.get(group_key);
  if (group === undefined) {
    group = { group_key, starts: new Map(), lastStart: Number.NaN, last: new Map() };
    buckets.groups.set(group_key, group);
  }
  buckets.lastGroup = group;
  return group;
}

function customersAt(group: Group, start: number): Customers {
  if (group.lastStart === start) return group.last;
  let customers = group.starts.get(start);
  if (customers === undefined) group.starts.set(start, (customers = new Map()));
  group.lastStart = start;
  group.last = customers;
  return customers;
}

function appendRows(rows: BucketRow[], buckets: MeterBuckets): void {
  for (const group of buckets.groups.values()) {
    const days = new Map<number, Customers>();
    for (const [start, customers] of group.starts) {
      const day = rowStart(start, 'DAY');
      let ofDay = days.get(day);
      if (ofDay === undefined) days.set(day, (ofDay = new Map()));
      for (const [customer, bucket] of customers) {
        rows.push(rowOf(buckets, { group, customer, size: buckets.meter.base_size, start, bucket }));
        foldInto(ofDay, customer, bucket);
      }
    }
    for (const [start, customers] of days) {
      for (const [customer, bucket] of customers) {
        rows.push(rowOf(buckets, { group, customer, size: 'DAY', start, bucket }));
      }
    }
  }
}

/** The base row is written already, so the first bucket of a day may serve as the day's own. */
function foldInto(day: Customers, customer: string, bucket: UsageBucket): void {
  const folded = day.get(customer);
  if (folded === undefined) day.set(customer, bucket);
  else folded.combine(bucket);
}

type Cell = {
  readonly group: Group;
  readonly customer: string;
  readonly size: RowSize;
  readonly start: number;
  readonly bucket: UsageBucket;
};

function rowOf({ scope, meter }: MeterBuckets, { group, customer, size, start, bucket }: Cell): BucketRow {
  return {
    tenant_id: scope.tenant_id,
    environment_id: scope.environment_id,
    meter_id: meter.id,
    external_customer_id: customer,
    size,
    bucket_start_us: start,
    group_key: group.group_key,
    count: bucket.count,
    sum: bucket.sum,
    weighted_sum: bucket.weighted_sum,
    min: bucket.min,
    max: bucket.max,
    latest: bucket.latest,
    uniques: bucket.uniques,
  };
}
