/**
 * The amount with which a subscription is pushed to a provider: its recurring fixed charges in one billing period, by the
 * lines that it starts with (docs/integrations/hubspot.md, "Deals"). Usage, one-time charges, discounts and taxes are not
 * included.
 */
import { Decimal, sumDecimals } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import { toInstant } from '../../foundation/time/instant.ts';
import type { PricedItem } from '../../rating/line-amount.ts';
import { chargePerPeriod } from '../../rating/yearly-charge.ts';
import type { Subscription, SubscriptionLineItem } from '../../subscriptions/record.ts';

type InitialLine = Pick<
  SubscriptionLineItem,
  'price_type' | 'quantity' | 'billing_period' | 'billing_period_count' | 'start_date' | 'end_date'
> &
  Pick<PricedItem, 'price'>;

/** A line with another billing period counts with its share: a year has 12 months, 52 weeks or 365 days. */
export function computeRecurringAmount(
  subscription: Pick<Subscription, 'start_date' | 'billing_period' | 'billing_period_count' | 'currency'>,
  lines: readonly InitialLine[],
): Decimal {
  const { currency } = subscription;
  const initial = lines.filter((line) => line.price_type === 'FIXED' && isInitial(line, subscription));
  const amounts = initial.map(({ price, quantity, billing_period, billing_period_count }) => {
    const item = { price, quantity: new Decimal(quantity), billing_period, billing_period_count };
    return roundMoney(chargePerPeriod(item, subscription), currency);
  });
  return sumDecimals(amounts);
}

function isInitial(
  { start_date, end_date }: Pick<InitialLine, 'start_date' | 'end_date'>,
  subscription: Pick<Subscription, 'start_date'>,
): boolean {
  const start = toInstant(subscription.start_date);
  return toInstant(start_date) <= start && (!end_date || toInstant(end_date) > start);
}
