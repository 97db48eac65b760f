/**
 * Cost of usage by a price of the cost sheet: the amount that an invoice of just this usage would have, by the same rating. It is not
 * rounded, because no one is invoiced (docs/rules/costs.md, "Priced as an invoice").
 */

import type { PriceTerms } from '../../catalog/pricing/charge.ts';
import { Decimal, ZERO } from '../../foundation/decimal.ts';
import type { Period } from '../../foundation/time/period.ts';
import { type MeasuredUsage, type PricedItem, priceUsageCharge } from '../../rating/line-amount.ts';

type CostPrice = PriceTerms & { readonly id: string; readonly meter_id?: string | null | undefined };

type CostUsage = Pick<MeasuredUsage, 'quantity' | 'event_count' | 'buckets'>;

export type Cost = { readonly cost: Decimal; readonly quantity: Decimal; readonly event_count: number };

export const NO_COST: Cost = { cost: ZERO, quantity: ZERO, event_count: 0 };

const NOWHEN: Period = { start: 0, end: 0 };

export function computeUsageCost(price: CostPrice, { quantity, event_count, buckets }: CostUsage): Cost {
  const measured = { quantity, event_count, buckets, as_of: '', high_water: {}, meter_version: 0 };
  const { exact } = priceUsageCharge(toPricedItem(price), NOWHEN, { measured, currency: price.currency });
  return { cost: exact!, quantity, event_count };
}

/** A cost sheet price as a priced line: no commitment, no free units. */
function toPricedItem(price: CostPrice): PricedItem {
  return {
    id: price.id,
    price_type: 'USAGE',
    invoice_cadence: 'ARREAR',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    start_ms: 0,
    end_ms: null,
    reset_usage: null,
    price,
    quantity: ZERO,
    display_name: '',
    meter_id: price.meter_id ?? null,
  };
}

/** Number of decimal places, equal to that of measured usage. */
const SHARE_DIGITS = 24;

/**
 * Splits a cost in proportion to usage, or to events if no part has usage above 0. The shares sum to the cost, so the last one takes the
 * rest of the division (docs/rules/costs.md, "By source and properties").
 */
export function shareCost<Part extends { readonly usage: Decimal; readonly event_count: number }>(
  cost: Decimal,
  parts: readonly Part[],
): (Part & { readonly cost: Decimal })[] {
  const byUsage = parts.map(({ usage }) => Decimal.max(usage, ZERO));
  const isUsed = byUsage.some((usage) => usage.gt(0));
  const weights = isUsed ? byUsage : parts.map(({ event_count }) => new Decimal(event_count));
  const whole = weights.reduce((sum, weight) => sum.plus(weight), ZERO);
  let [weighed, given] = [ZERO, ZERO];
  return parts.map((part, index) => {
    weighed = weighed.plus(weights[index]!);
    const so_far = whole.isZero() ? ZERO : computeShareUntil(cost, weighed, whole);
    const own = so_far.minus(given);
    given = so_far;
    return { ...part, cost: own };
  });
}

function computeShareUntil(cost: Decimal, weighed: Decimal, whole: Decimal): Decimal {
  return weighed.eq(whole) ? cost : cost.times(weighed).dividedBy(whole).toDecimalPlaces(SHARE_DIGITS);
}
