/** COUNT: the number of events. It needs no field. */
import { Decimal } from '../../foundation/decimal.ts';
import { contributeEvent } from '../contribution.ts';
import type { MeterAggregator } from './aggregation.ts';

export const count: MeterAggregator = {
  needs_value: false,
  takes: [],
  chain_rule: 'additive',
  fills: ['count'],
  measure: contributeEvent,
  add(bucket) {
    bucket.count++;
  },
  finish(bucket) {
    return new Decimal(bucket.count);
  },
};
