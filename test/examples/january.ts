/** A line of January 2026, for examples that say how usage is priced and nothing about when. */
import type { PricedItem } from '../../core/billing/line-amount.ts';
import { ZERO } from '../../core/decimal.ts';
import type { PriceTerms } from '../../core/pricing/charge.ts';

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
