/**
 * How a change of a price meets a meter (docs/rules/metering.md, "Meters that never reset" and "Levels over time"): what never resets is charged once
 * per period, so that its price changes with the period; a level has an integral of its own in each period, of which a line charges its
 * part.
 */
import type { Meter } from '../meter/record.ts';
import { AGGREGATIONS } from './aggregations/index.ts';

/** `NEVER` where prices of the meter change with the billing period alone. */
export function priceReset({
  reset_usage,
  aggregation,
}: Pick<Meter, 'reset_usage' | 'aggregation'>): Meter['reset_usage'] {
  return AGGREGATIONS[aggregation.type].chain_rule === 'integral' ? 'BILLING_PERIOD' : reset_usage;
}
