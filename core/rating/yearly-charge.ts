/** Yearly amount of fixed charges, so that charges with different periods can be compared and added up. */

import { chargeParts } from '../catalog/pricing/charge.ts';
import { type Decimal, sumDecimals } from '../foundation/decimal.ts';
import { roundMoney } from '../foundation/money.ts';
import type { BilledSubscription } from './charges.ts';
import type { PricedItem } from './line-amount.ts';

/** Number of periods per year. */
const PER_YEAR = { DAILY: 365, WEEKLY: 52, MONTHLY: 12, QUARTERLY: 4, HALF_YEARLY: 2, ANNUAL: 1, ONETIME: 0 } as const;

type RecurringItem = Pick<PricedItem, 'price' | 'quantity' | 'billing_period' | 'billing_period_count'>;

/** Monthly amount of a fixed charge, rounded like a line. */
export function computeMonthlyCharge(item: RecurringItem, currency: string): Decimal {
  return roundMoney(yearlyCharge(item).dividedBy(12), currency);
}

export function yearlyCharge({ price, quantity, billing_period, billing_period_count }: RecurringItem): Decimal {
  const amount = sumDecimals(chargeParts(price, quantity).map((part) => part.amount));
  return amount.times(PER_YEAR[billing_period]).dividedBy(billing_period_count);
}

/** Amount in one billing period of this length, which may differ from the period of the item. */
export function chargePerPeriod(
  item: RecurringItem,
  { billing_period, billing_period_count }: Pick<BilledSubscription, 'billing_period' | 'billing_period_count'>,
): Decimal {
  return yearlyCharge(item).times(billing_period_count).dividedBy(PER_YEAR[billing_period]);
}
