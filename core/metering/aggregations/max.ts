/**
 * MAX: the greatest v of the range; it may be negative. With a bucket_size the total is the sum of the maxima of all
 * windows. With group_by each group in a window has its own maximum, and these are added (docs/rules/metering.md, "Meters
 * with windows of their own"). usage.ts adds up windows and groups.
 */
import { ZERO } from '../../foundation/decimal.ts';
import type { Exact } from '../exact.ts';
import { scaledToDecimal } from '../quantity.ts';
import type { MeterAggregator } from './aggregation.ts';

export const max: MeterAggregator = {
  value_kind: 'number',
  takes: ['bucket_size', 'group_by'],
  chain_rule: 'shared',
  counts_units: false,
  fills: ['count', 'min', 'max'],
  add(bucket, contribution) {
    bucket.count++;
    bucket.addToRange(contribution.value as Exact);
  },
  finish(bucket) {
    const greatest = bucket.max;
    return greatest === null ? ZERO : scaledToDecimal(greatest);
  },
  verifier: '(of) => quantityOf(of.greatest)',
};
