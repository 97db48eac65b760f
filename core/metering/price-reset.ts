/**
 * Decides whether prices of a meter change only with the billing period (docs/rules/metering.md, "Meters that never reset" and "Levels over
 * time"). A meter that never resets is charged once per period, so its price changes only with the period. A level, the value of a
 * WEIGHTED_SUM meter, has an integral in each period. Each line charges its part, so the price may change at any time.
 */

import { AGGREGATIONS } from './aggregations/index.ts';
import type { Meter } from './meter/record.ts';

/** Derives when prices of the meter change: `NEVER` means only with the billing period. */
export function priceReset({
  reset_usage,
  aggregation,
}: Pick<Meter, 'reset_usage' | 'aggregation'>): Meter['reset_usage'] {
  return AGGREGATIONS[aggregation.type].chain_rule === 'integral' ? 'BILLING_PERIOD' : reset_usage;
}
