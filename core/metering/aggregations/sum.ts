/** SUM: Σ v, exact. With a bucket_size the total is the sum of the windows, which equals the sum of all events. */
import type { Exact } from '../exact.ts';
import { scaledToDecimal } from '../quantity.ts';
import type { MeterAggregator } from './aggregation.ts';

export const sum: MeterAggregator = {
  value_kind: 'number',
  takes: ['bucket_size'],
  chain_rule: 'additive',
  counts_units: true,
  fills: ['count', 'sum'],
  add(bucket, contribution) {
    bucket.count++;
    bucket.addSum(contribution.value as Exact);
  },
  finish(bucket) {
    return scaledToDecimal(bucket.sum);
  },
  verifier: '(of) => quantityOf(of.sum)',
};
