/**
 * The one door to usage: preview, invoice, usage endpoints, analytics and audits ask here, so that they cannot disagree
 * (decisions §16). Written by the pipeline's owner; the answer comes from days, base buckets and the raw rows of ragged ends.
 */
import type { Decimal } from '../../core/decimal.ts';
import type { Scope } from '../../core/scope.ts';
import type { Meter } from '../../core/catalogue/meter.ts';
import type { Stores } from '../stores.ts';

/** What a meter measured for one customer in the half-open range [start_ms, end_ms). */
export type UsageQuestion = {
  readonly meter: Meter;
  readonly external_customer_id: string;
  readonly start_ms: number;
  readonly end_ms: number;
  /** IANA zone that aligns the meter's own buckets (bucket_size of a day and more); UTC when absent. */
  readonly timezone?: string;
  readonly billing_anchor_ms?: number;
};

export type UsageAnswer = {
  /** The meter's value over the whole range, exact; may be negative (the billed quantity is floored by billing). */
  readonly quantity: Decimal;
  readonly event_count: number;
  /** Values per bucket of a meter with bucket_size, priced one by one; per group when the meter has group_by. Null otherwise. */
  readonly buckets: readonly (readonly Decimal[])[] | null;
  /** Everything that was durable in the log before this instant is in the answer. */
  readonly as_of: string;
  /** Per partition, the log offset that the answer includes up to (exclusive): the invoice line's high-water mark. */
  readonly high_water: Readonly<Record<string, string>>;
};


export async function readUsage(_stores: Stores, _scope: Scope, _question: UsageQuestion): Promise<UsageAnswer> {
  throw new Error('written next');
}
