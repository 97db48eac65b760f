/**
 * WEIGHTED_SUM: Σ v × (end − t) / (end − start). A value counts for the part of the range that remains at its time t. The
 * pair (Σ v, Σ v·t) gives the result for any range: (end × Σ v − Σ v·t) / (end − start).
 */
import { ZERO } from '../../foundation/decimal.ts';
import type { Microseconds } from '../../foundation/time/instant.ts';
import type { UsageBucket } from '../bucket.ts';
import { divideRounded, type Exact } from '../exact.ts';
import { scaledToDecimal } from '../quantity.ts';
import type { MeterAggregator } from './aggregation.ts';

export const weightedSum: MeterAggregator = {
  value_kind: 'number',
  takes: [],
  needs_range: true,
  chain_rule: 'integral',
  counts_units: false,
  fills: ['count', 'sum', 'weighted_sum'],
  add(bucket, contribution) {
    const value = contribution.value as Exact;
    bucket.count++;
    bucket.addSum(value);
    bucket.addWeighted(value, contribution.event.timestamp_us);
  },
  finish(bucket, { start_us, end_us }) {
    if (bucket.count === 0) return ZERO;
    if (end_us <= start_us) throw new RangeError('WEIGHTED_SUM needs a range that is not empty');
    return scaledToDecimal(divideRounded(weightUntil(bucket, end_us), BigInt(end_us - start_us)));
  },
  integrate: (bucket, { end_us }) => scaledToDecimal(weightUntil(bucket, end_us)),
  verifier: '(of, { start, end }) => quantityOf(divided(of.sum * BigInt(end) - of.weighted, BigInt(end - start)))',
};

function weightUntil(bucket: UsageBucket, end_us: Microseconds): bigint {
  return bucket.sum * BigInt(end_us) - bucket.weighted_sum;
}
