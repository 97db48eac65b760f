/** COUNT_UNIQUE: the number of distinct values of the field, counted exactly. */
import { Decimal } from '../../foundation/decimal.ts';
import { contributeIdentity } from '../contribution.ts';
import type { MeterAggregator } from './aggregation.ts';

export const countUnique: MeterAggregator = {
  needs_value: true,
  takes: [],
  chain_rule: 'shared',
  fills: ['count', 'uniques'],
  measure: contributeIdentity,
  add(bucket, contribution) {
    bucket.count++;
    bucket.addUnique(contribution.identity as string);
  },
  finish(bucket) {
    return new Decimal(bucket.unique_count);
  },
};
