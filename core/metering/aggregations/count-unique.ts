/** COUNT_UNIQUE: the number of distinct values of the field, counted exactly. */
import { Decimal } from '../../foundation/decimal.ts';
import type { MeterAggregator } from './aggregation.ts';

export const countUnique: MeterAggregator = {
  value_kind: 'identity',
  takes: [],
  chain_rule: 'shared',
  counts_units: true,
  fills: ['count', 'uniques'],
  add(bucket, contribution) {
    bucket.count++;
    bucket.addUnique(contribution.identity as string);
  },
  finish(bucket) {
    return new Decimal(bucket.unique_count);
  },
  verifier: '(of) => new Fraction(BigInt(of.values.size))',
};
