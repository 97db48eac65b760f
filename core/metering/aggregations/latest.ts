/**
 * LATEST: the value of the newest usable event; if two have one instant, the greater id wins (docs/rules/metering.md,
 * "Aggregations").
 */
import { ZERO } from '../../foundation/decimal.ts';
import { contributeNumber } from '../contribution.ts';
import type { Exact } from '../exact.ts';
import { scaledToDecimal } from '../quantity.ts';
import type { MeterAggregator } from './aggregation.ts';

export const latest: MeterAggregator = {
  needs_value: true,
  takes: [],
  chain_rule: 'shared',
  fills: ['count', 'latest'],
  measure: contributeNumber,
  add(bucket, contribution) {
    bucket.count++;
    bucket.addLatest(contribution.event, contribution.value as Exact);
  },
  finish(bucket) {
    const newest = bucket.latest;
    return newest === null ? ZERO : scaledToDecimal(newest.value);
  },
};
