/** LATEST "takes the newest usable event, ties by event id" (decisions §9): of two at one instant, the greater id. */
import { ZERO } from '../../decimal.ts';
import { contributeNumber } from '../contribution.ts';
import type { Exact } from '../exact.ts';
import { decimalOfScaled } from '../quantity.ts';
import type { Aggregation } from './aggregation.ts';

export const latest: Aggregation = {
  type: 'LATEST',
  needs_value: true,
  fills: ['count', 'latest'],
  measure: contributeNumber,
  add(bucket, contribution) {
    bucket.count++;
    bucket.addLatest(contribution.event, contribution.value as Exact);
  },
  finish(bucket) {
    const newest = bucket.latest;
    return newest === null ? ZERO : decimalOfScaled(newest.value);
  },
};
