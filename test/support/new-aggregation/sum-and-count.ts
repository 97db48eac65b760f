/**
 * A new aggregation in one file, as in `core/metering/aggregations/`, and the line that lists it. Import it before any
 * other module: types and checks derive from the list when they are loaded.
 */
import type { MeterAggregator } from '../../../core/metering/aggregations/aggregation.ts';
import { AGGREGATIONS } from '../../../core/metering/aggregations/index.ts';
import type { Exact } from '../../../core/metering/exact.ts';
import { QUANTITY_PLACES, scaledToDecimal } from '../../../core/metering/quantity.ts';

/** Each event counts its value plus one unit. */
const sumAndCount: MeterAggregator = {
  value_kind: 'number',
  takes: ['bucket_size'],
  chain_rule: 'additive',
  counts_units: true,
  fills: ['count', 'sum'],
  add(bucket, contribution) {
    bucket.count++;
    bucket.addSum(contribution.value as Exact);
  },
  finish: (bucket) => scaledToDecimal(bucket.sum + BigInt(bucket.count) * 10n ** BigInt(QUANTITY_PLACES)),
  verifier: '(of) => quantityOf(of.sum).plus(new Fraction(BigInt(of.count)))',
};

Object.assign(AGGREGATIONS, { SUM_AND_COUNT: sumAndCount });
