/**
 * LATEST: the value of the newest usable event; if two have one instant, the greater id wins (docs/rules/metering.md,
 * "Aggregations").
 */
import { ZERO } from '../../foundation/decimal.ts';
import type { Exact } from '../exact.ts';
import { scaledToDecimal } from '../quantity.ts';
import type { MeterAggregator } from './aggregation.ts';

export const latest: MeterAggregator = {
  value_kind: 'number',
  takes: [],
  chain_rule: 'shared',
  counts_units: false,
  fills: ['count', 'latest'],
  add(bucket, contribution) {
    bucket.count++;
    bucket.addLatest(contribution.event, contribution.value as Exact);
  },
  finish(bucket) {
    const newest = bucket.latest;
    return newest === null ? ZERO : scaledToDecimal(newest.value);
  },
  verifier: '(of) => quantityOf(of.newest)',
};
