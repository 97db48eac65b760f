/** A line of January 2026, for examples that say how usage is priced and nothing about when. */

import type { PriceTerms } from '../../core/catalog/pricing/charge.ts';
import { ZERO } from '../../core/foundation/decimal.ts';
import type { PricedItem } from '../../core/rating/line-amount.ts';

export const JANUARY = { start: Date.UTC(2026, 0), end: Date.UTC(2026, 1) };

/** Charged monthly in arrears for what the meter measured. */
export function usageItem(price: PriceTerms, changes: Partial<PricedItem> = {}): PricedItem {
  return {
    id: 'line',
    price_type: 'USAGE',
    invoice_cadence: 'ARREAR',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    start_ms: JANUARY.start,
    end_ms: null,
    reset_usage: 'BILLING_PERIOD',
    price,
    quantity: ZERO,
    display_name: '',
    meter_id: 'meter',
    ...changes,
  };
}
