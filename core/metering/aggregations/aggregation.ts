/** The properties of an aggregation type, defined once for the processor, the store and usage queries. */
import type { Decimal } from '../../foundation/decimal.ts';
import type { Microseconds } from '../../foundation/time/instant.ts';
import type { BucketField, UsageBucket } from '../bucket.ts';
import type { Contribution, ValueKind } from '../contribution.ts';

/** The half-open range of the query and the meter's multiplier. */
type FinishRange = {
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly multiplier: Decimal | undefined;
};

/**
 * How lines that follow one another inside a billing period share usage (docs/rules/proration.md, "Usage over a change"). `additive`: the
 * line that is active at the time of an event charges it. `shared`: the period has one number, divided between the lines by time.
 * `integral`: the period has one integral over time, and each line charges its part of it.
 */
export type ChainRule = 'additive' | 'shared' | 'integral';

export type MeterAggregator = {
  /** Value that the type needs of each event. With `none`, events are counted, and neither field nor expression is needed. */
  readonly value_kind: ValueKind;
  /** Additional settings of this type. A multiplier, if listed, is required. */
  readonly takes: readonly ('multiplier' | 'bucket_size' | 'group_by')[];
  /** Whether the result of one set of events differs with the queried range. */
  readonly needs_range?: true;
  readonly chain_rule: ChainRule;
  /**
   * Whether each used unit adds one unit of usage, so that a reservation can be checked for a number of units (docs/rules/reservations.md).
   */
  readonly counts_units: boolean;
  /** The bucket fields that this type fills; bucket.ts defines how each of them combines. */
  readonly fills: readonly BucketField[];
  add(bucket: UsageBucket, contribution: Contribution): void;
  /** Turns a merged bucket into a number; an empty bucket gives 0 for every type (docs/rules/metering.md, "Aggregations"). */
  finish(bucket: UsageBucket, range: FinishRange): Decimal;
  /** Units × microseconds until the end of the range, exact; only for `integral` types. */
  integrate?(bucket: UsageBucket, range: Pick<FinishRange, 'end_us'>): Decimal;
  /**
   * The computation of `finish`, written again as JavaScript over a `Measure` of commands/verify-invoice.mjs, which imports nothing. It
   * must not be derived from `finish`, because the verifier checks the result of that. `GOLDEN=write npm test --
   * test/core/metering/aggregation-files.test.ts` copies it into the verifier.
   */
  readonly verifier: string;
};
