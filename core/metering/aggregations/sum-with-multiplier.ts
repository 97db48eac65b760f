/** SUM_WITH_MULTIPLIER: Σ v × multiplier, exact. The sum is multiplied once (docs/rules/metering.md, "Aggregations"). */
import { Decimal } from '../../foundation/decimal.ts';
import { type Exact, exactText, times, toExact } from '../exact.ts';
import { QUANTITY_PLACES } from '../quantity.ts';
import type { MeterAggregator } from './aggregation.ts';

export const sumWithMultiplier: MeterAggregator = {
  value_kind: 'number',
  takes: ['multiplier'],
  chain_rule: 'additive',
  counts_units: true,
  fills: ['count', 'sum'],
  add(bucket, contribution) {
    bucket.count++;
    bucket.addSum(contribution.value as Exact);
  },
  finish(bucket, { multiplier }) {
    if (multiplier === undefined) throw new TypeError('SUM_WITH_MULTIPLIER needs its multiplier');
    return new Decimal(exactText(times(toExact(bucket.sum, QUANTITY_PLACES), fromDecimal(multiplier))));
  },
  verifier: "(of, { multiplier }) => quantityOf(of.sum).times(decimal(multiplier, 'multiplier'))",
};

function fromDecimal(value: Decimal): Exact {
  const places = value.decimalPlaces();
  return toExact(BigInt(value.toFixed(places).replace('.', '')), places);
}
