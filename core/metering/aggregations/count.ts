/** COUNT: the number of events. It needs no field. */
import { Decimal } from '../../foundation/decimal.ts';
import type { MeterAggregator } from './aggregation.ts';

export const count: MeterAggregator = {
  value_kind: 'none',
  takes: [],
  chain_rule: 'additive',
  counts_units: true,
  fills: ['count'],
  add(bucket) {
    bucket.count++;
  },
  finish(bucket) {
    return new Decimal(bucket.count);
  },
  verifier: '(of) => new Fraction(BigInt(of.count))',
};
