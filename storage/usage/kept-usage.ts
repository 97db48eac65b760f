/** What is kept of one question (storage/usage/usage-memory.ts): its cells, as of the progress that the memory has followed. */
import { type Range, united } from '../../core/analytics/segments.ts';
import { UsageBucket } from '../../core/metering/bucket.ts';
import type { BucketRow } from '../../core/metering/plan.ts';
import { type Microseconds, US_PER_SECOND } from '../../core/time/instant.ts';
import {
  type BucketQuestion,
  type Cell,
  type Ends,
  endOf,
  type Inside,
  isBeyond,
  type StoredCells,
} from './bucket-cells.ts';
import { segmentIndex } from './bucket-lines.ts';

/** Of more cells nothing is kept: groups may be any number. */
export const CELLS_MAX = 200;

const OWN_WEIGHT = 5;

type KeptCell = { readonly segment: number } & Pick<Cell, 'window_us' | 'group_key' | 'customer' | 'bucket'>;
type LaterRow = { readonly start_us: Microseconds; readonly cell: KeptCell; readonly ends: Ends };

export class KeptUsage {
  readonly meter_id: string;
  readonly customers: ReadonlySet<string>;
  /** Null where what came behind the range is not known. */
  readonly open_key: string | null;
  /** In cells, as it was read; a question without any takes a place, too. */
  readonly weight: number;
  #question: BucketQuestion;
  #ranges: readonly Range[];
  readonly #cells = new Map<string, KeptCell>();
  #ends: Ends;
  /** Rows behind the range since it was read, where there were none then: what a later end will take in. Null where it is not known. */
  #later: LaterRow[] | null;

  constructor({ bounds: _ofOneRequest, ...question }: BucketQuestion, { cells, ends, has_later }: StoredCells) {
    this.meter_id = question.meter.id;
    this.customers = new Set(question.external_customer_ids);
    this.#question = question;
    this.#ranges = rangesOf(question);
    this.#ends = ends;
    this.#later = has_later ? null : [];
    this.weight = OWN_WEIGHT + cells.length;
    this.open_key = has_later ? null : openKeyOf(question);
    for (const { segment_us, window_us, group_key, customer, bucket } of cells) {
      const segment = segmentIndex(question.plan.segments, segment_us / US_PER_SECOND);
      this.#combine({ segment, window_us, group_key, customer, bucket });
    }
  }

  add(row: BucketRow, version: number): void {
    const { tenant_id, environment_id, meter_version } = this.#question;
    if (row.tenant_id !== tenant_id || row.environment_id !== environment_id || version !== meter_version) return;
    const later: LaterRow = {
      start_us: row.bucket_start_us,
      cell: this.#cellOf(row),
      ends: {
        first_us: row.first_us ?? Number.NEGATIVE_INFINITY,
        last_us: row.last_us ?? Number.POSITIVE_INFINITY,
      },
    };
    if (this.#cells.size > CELLS_MAX) return;
    if (isIn(this.#ranges, later.start_us)) this.#take(later);
    else if (this.#later && later.start_us >= endOf(this.#question.plan)) this.#keepForLater(later, this.#later);
  }

  /** It has become too much, and what came since is not in it. */
  get is_overgrown(): boolean {
    return this.#cells.size > CELLS_MAX;
  }

  /** Takes in what came behind the range up to where this question ends; false where that is not known. */
  extendTo({ bounds: _ofOneRequest, ...question }: BucketQuestion): boolean {
    const { plan } = this.#question;
    const end_us = endOf(plan);
    if (this.#later === null || this.is_overgrown || endOf(question.plan) < end_us) return false;
    // Of the bucket of each end it must be known when its first and last event happened.
    const isKnown = ([from, to]: Range) =>
      from >= end_us || plan.edge_ranges.some((edge) => edge[0] === from && edge[1] === to);
    if (!question.plan.edge_ranges.every(isKnown)) return false;
    this.#question = question;
    this.#ranges = rangesOf(question);
    const rows = this.#later;
    this.#later = [];
    for (const row of rows) {
      if (isIn(this.#ranges, row.start_us)) this.#take(row);
      else this.#later.push(row);
    }
    return true;
  }

  /** Of a question with the same key, whose first segment may begin elsewhere in its bucket. */
  answer({ plan: { segments } }: BucketQuestion, inside: Inside | undefined): StoredCells {
    const cells = [...this.#cells.values()].map(({ segment, bucket, ...place }): Cell => {
      const segment_us = Math.floor((segments[segment]?.start_us ?? 0) / US_PER_SECOND) * US_PER_SECOND;
      return { ...place, segment_us, counted_uniques: null, bucket: UsageBucket.of(bucket) };
    });
    const beyond = inside === undefined ? { start: false, end: false } : isBeyond(this.#ends, inside);
    return { cells, beyond, ends: this.#ends, has_later: this.#later === null };
  }

  #cellOf(row: BucketRow): KeptCell {
    const { meter, by_customer, plan } = this.#question;
    const { bucket_start_us, group_key, external_customer_id } = row;
    return {
      segment: segmentIndex(plan.segments, bucket_start_us / US_PER_SECOND),
      window_us: plan.rows_are_windows ? bucket_start_us : 0,
      group_key: meter.group_by === undefined ? '' : group_key,
      customer: by_customer ? external_customer_id : '',
      bucket: UsageBucket.of(row),
    };
  }

  #take({ start_us, cell, ends }: LaterRow): void {
    this.#combine(cell);
    if (!isIn(this.#question.plan.edge_ranges, start_us)) return;
    const { first_us, last_us } = this.#ends;
    this.#ends = { first_us: Math.min(first_us, ends.first_us), last_us: Math.max(last_us, ends.last_us) };
  }

  #keepForLater(row: LaterRow, later: LaterRow[]): void {
    later.push(row);
    if (later.length > CELLS_MAX) this.#later = null;
  }

  #combine({ bucket, ...place }: KeptCell): void {
    const key = JSON.stringify([place.segment, place.window_us, place.group_key, place.customer]);
    const known = this.#cells.get(key);
    if (known) known.bucket.combine(bucket);
    else this.#cells.set(key, { ...place, bucket: UsageBucket.of(bucket) });
  }
}

/** Questions are the same where the same rows answer them, in the same parts: one "until now" is the next one's. */
export function keyOf(question: BucketQuestion, inside: Inside | undefined): string {
  const { segments, rows_are_windows, edge_ranges } = question.plan;
  return JSON.stringify([
    lineOf(question),
    [rangesOf(question), inside === undefined ? null : edge_ranges, rows_are_windows],
    segments.slice(1).map(({ start_us }) => start_us),
  ]);
}

/**
 * The same of all questions that differ in their ends alone, where one answer can become that of the next hour: of one stretch of
 * time that is not cut into windows. Null of others.
 */
export function openKeyOf(question: BucketQuestion): string | null {
  const { segments, rows_are_windows, edge_ranges } = question.plan;
  const [range, ...more] = rangesOf(question);
  if (range === undefined || more.length > 0 || segments.length > 1 || rows_are_windows) return null;
  const [start_us] = range;
  return JSON.stringify([lineOf(question), start_us, edge_ranges.some(([from_us]) => from_us === start_us)]);
}

function lineOf({
  tenant_id,
  environment_id,
  meter,
  meter_version,
  external_customer_ids,
  by_customer,
}: BucketQuestion) {
  return [tenant_id, environment_id, meter.id, meter_version, external_customer_ids, by_customer];
}

/** Whichever size of row stands for a part of it. */
function rangesOf({ plan: { base_ranges, day_ranges } }: BucketQuestion): Range[] {
  return united([...base_ranges, ...day_ranges]);
}

function isIn(ranges: readonly Range[], at: Microseconds): boolean {
  return ranges.some(([from, to]) => at >= from && at < to);
}
