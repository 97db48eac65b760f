/**
 * AVG: Σ v / n, rounded half away from zero to 24 places; 0 with an event count of 0 if there are no events
 * (docs/rules/metering.md, "Aggregations").
 */
import { ZERO } from '../../foundation/decimal.ts';
import { divideRounded, type Exact } from '../exact.ts';
import { scaledToDecimal } from '../quantity.ts';
import type { MeterAggregator } from './aggregation.ts';

export const avg: MeterAggregator = {
  value_kind: 'number',
  takes: [],
  chain_rule: 'shared',
  counts_units: false,
  fills: ['count', 'sum'],
  add(bucket, contribution) {
    bucket.count++;
    bucket.addSum(contribution.value as Exact);
  },
  finish(bucket) {
    return bucket.count === 0 ? ZERO : scaledToDecimal(divideRounded(bucket.sum, BigInt(bucket.count)));
  },
  verifier: '(of) => quantityOf(divided(of.sum, BigInt(of.count)))',
};
