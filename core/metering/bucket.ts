/**
 * A pre-aggregated row: partial states that combine in any order. They are the count, exact decimal sum, min, max, latest
 * (timestamp, id, value) and exact distinct set; the time-weighted sum adds the pair (Σ v, Σ v·t). Each aggregation fills
 * the fields that it needs; the others stay neutral and cost nothing.
 */
import type { Microseconds } from '../foundation/time/instant.ts';
import { compare, type Exact, toExact, toMantissa } from './exact.ts';
import { ExactSum, fromScaled, toScaled } from './quantity.ts';

export type BucketField = 'count' | 'sum' | 'weighted_sum' | 'min' | 'max' | 'latest' | 'uniques';

export type Latest = { readonly timestamp_us: Microseconds; readonly event_id: string; readonly value: bigint };

/** The stored form of a bucket: every number is the quantity times 10^24. */
export type BucketFields = {
  readonly count: number;
  readonly sum: bigint;
  /** Exact sum of value × timestamp in microseconds. */
  readonly weighted_sum: bigint;
  readonly min: bigint | null;
  readonly max: bigint | null;
  readonly latest: Latest | null;
  readonly uniques: readonly string[];
};

type EventMoment = { readonly timestamp_us: Microseconds; readonly event_id: string };

export class UsageBucket {
  count = 0;
  /** Times of the first and the last event passed to `see`. */
  first_us = Number.POSITIVE_INFINITY;
  last_us = Number.NEGATIVE_INFINITY;
  private total: ExactSum | undefined;
  private weighted: ExactSum | undefined;
  private least: Exact | undefined;
  private greatest: Exact | undefined;
  private newest: EventMoment | undefined;
  private newestValue: Exact | undefined;
  private distinct: Set<string> | undefined;

  static of(fields: BucketFields): UsageBucket {
    const bucket = new UsageBucket();
    bucket.count = fields.count;
    if (fields.sum !== 0n) bucket.addSum(fromScaled(fields.sum));
    if (fields.weighted_sum !== 0n) bucket.addScaledWeight(fields.weighted_sum);
    if (fields.min !== null) bucket.addToRange(fromScaled(fields.min));
    if (fields.max !== null) bucket.addToRange(fromScaled(fields.max));
    if (fields.latest !== null) bucket.addLatest(fields.latest, fromScaled(fields.latest.value));
    for (const identity of fields.uniques) bucket.addUnique(identity);
    return bucket;
  }

  see(timestamp_us: Microseconds): void {
    if (timestamp_us < this.first_us) this.first_us = timestamp_us;
    if (timestamp_us > this.last_us) this.last_us = timestamp_us;
  }

  addSum(value: Exact): void {
    this.total ??= new ExactSum();
    this.total.add(value);
  }

  addWeighted(value: Exact, timestamp_us: Microseconds): void {
    this.weighted ??= new ExactSum();
    this.weighted.add(toExact(toMantissa(value) * BigInt(timestamp_us), value.scale));
  }

  /** Ends the level of a WEIGHTED_SUM at this instant: adds the negated sum as a value at `at_us`. */
  leave(at_us: Microseconds): void {
    const level = fromScaled(-this.sum);
    this.addSum(level);
    this.addWeighted(level, at_us);
  }

  addToRange(value: Exact): void {
    if (this.least === undefined || compare(value, this.least) < 0) this.least = value;
    if (this.greatest === undefined || compare(value, this.greatest) > 0) this.greatest = value;
  }

  /**
   * Sets the latest value if this event is newer. If two events have one instant, the greater id wins; the order of
   * calls does not matter.
   */
  addLatest(moment: EventMoment, value: Exact): void {
    if (this.newest !== undefined && !isNewer(moment, this.newest)) return;
    this.newest = moment;
    this.newestValue = value;
  }

  addUnique(identity: string): void {
    this.distinct ??= new Set();
    this.distinct.add(identity);
  }

  /** Merges another bucket into this one. The result does not depend on order or grouping. */
  combine(other: UsageBucket): void {
    this.count += other.count;
    if (other.total !== undefined) (this.total ??= new ExactSum()).addSum(other.total);
    if (other.weighted !== undefined) this.addScaledWeight(other.weighted.scaled);
    if (other.least !== undefined) this.addToRange(other.least);
    if (other.greatest !== undefined) this.addToRange(other.greatest);
    if (other.newest !== undefined) this.addLatest(other.newest, other.newestValue as Exact);
    if (other.distinct !== undefined) for (const identity of other.distinct) this.addUnique(identity);
  }

  /** A bucket that subtracts this one when it is combined; valid only for fields that add up. */
  negative(): UsageBucket {
    const { count, sum, weighted_sum } = this;
    const none = { min: null, max: null, latest: null, uniques: NONE };
    return UsageBucket.of({ count: -count, sum: -sum, weighted_sum: -weighted_sum, ...none });
  }

  get sum(): bigint {
    return this.total === undefined ? 0n : this.total.scaled;
  }

  get weighted_sum(): bigint {
    return this.weighted === undefined ? 0n : this.weighted.scaled;
  }

  get min(): bigint | null {
    return this.least === undefined ? null : toScaled(this.least);
  }

  get max(): bigint | null {
    return this.greatest === undefined ? null : toScaled(this.greatest);
  }

  get latest(): Latest | null {
    if (this.newest === undefined) return null;
    const { timestamp_us, event_id } = this.newest;
    return { timestamp_us, event_id, value: toScaled(this.newestValue as Exact) };
  }

  get uniques(): readonly string[] {
    return this.distinct === undefined ? NONE : [...this.distinct];
  }

  get unique_count(): number {
    return this.distinct === undefined ? 0 : this.distinct.size;
  }

  private addScaledWeight(scaled: bigint): void {
    this.weighted ??= new ExactSum();
    this.weighted.addScaled(scaled);
  }
}

const NONE: readonly string[] = [];

function isNewer(moment: EventMoment, than: EventMoment): boolean {
  if (moment.timestamp_us !== than.timestamp_us) return moment.timestamp_us > than.timestamp_us;
  return compareIds(moment.event_id, than.event_id) > 0;
}

/** Compares ids by UTF-8 bytes, as the store does. JavaScript compares UTF-16 units, which puts surrogates below U+E000. */
export function compareIds(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left !== right) return codePointRank(left) - codePointRank(right);
  }
  return a.length - b.length;
}

function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
