/** What an aggregation type states about itself, once: the processor, the store and the usage questions all follow it. */
import type { Decimal } from '../../decimal.ts';
import type { Microseconds } from '../../time/instant.ts';
import type { BucketField, UsageBucket } from '../bucket.ts';
import type { Contribution, MeteredEvent, Unusable, ValueSource } from '../contribution.ts';

/** The half-open range that a number is asked for, and the meter's multiplier. */
export type FinishRange = {
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly multiplier: Decimal | undefined;
};

/**
 * How usage is shared among lines that follow one another inside a billing period (docs/rules/proration.md, "Usage over a change"):
 * `additive`, each event is charged by the line in force; `shared`, one number of the period, shared by time; `integral`, one integral over
 * time, shared by the part of it that each line has.
 */
export type ChainRule = 'additive' | 'shared' | 'integral';

export type MeterAggregator = {
  /** Whether a field or an expression must say what to aggregate. */
  readonly needs_value: boolean;
  /** What else a meter of this type may state. A multiplier is then required. */
  readonly takes: readonly ('multiplier' | 'bucket_size' | 'group_by')[];
  /** Whether the number of the same events depends on the range that is asked for. */
  readonly needs_range?: true;
  readonly chain_rule: ChainRule;
  /** The fields of a bucket that this type fills; bucket.ts says how each of them combines. */
  readonly fills: readonly BucketField[];
  /** What one event contributes. */
  measure(source: ValueSource, event: MeteredEvent): Contribution | Unusable;
  add(bucket: UsageBucket, contribution: Contribution): void;
  /** How a merged bucket becomes a number; an empty bucket gives 0 for every type (docs/rules/metering.md, "Aggregations"). */
  finish(bucket: UsageBucket, range: FinishRange): Decimal;
  /** Units × microseconds until the end of the range, exact; of `integral` types alone. */
  integrate?(bucket: UsageBucket, range: Pick<FinishRange, 'end_us'>): Decimal;
};
