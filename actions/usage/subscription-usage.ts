/**
 * Usage and charges of a subscription for a period: every usage line item measured by the one usage reader and priced by
 * the one rating function, as on the invoice (docs/rules/usage.md, "One number"). Without dates it is the running period;
 * an item with a period of its own shows that.
 */
import { runningPeriod, usageWindowIn } from '../../core/billing/charges.ts';
import { usageCharge } from '../../core/billing/line-amount.ts';
import { type Decimal, sumOf } from '../../core/decimal.ts';
import { invalid } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { instantOf } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores } from '../../storage/stores.ts';
import { mapConcurrently } from '../../storage/together.ts';
import {
  type BillableItem,
  billedSubscription,
  CHARGES_AT_ONCE,
  currentPeriod,
  gatherItems,
  usageReader,
} from '../billing/billable-items.ts';

export type UsageRequest = {
  subscription_id: string;
  start_time?: string | null;
  end_time?: string | null;
  lifetime_usage?: boolean | null;
};

export type UsageCharge = { item: BillableItem; quantity: Decimal; amount: Decimal };
export type SubscriptionUsage = {
  subscription: SubscriptionModel;
  period: Period;
  charges: UsageCharge[];
  amount: Decimal;
};

export async function subscriptionUsage(
  stores: Stores,
  scope: Scope,
  request: UsageRequest,
  now: Date,
): Promise<SubscriptionUsage> {
  const database = stores.postgres;
  const subscription = await SubscriptionModel.fetch(scope, request.subscription_id, { database });
  const asked = askedPeriod(subscription, request, now);
  const billed = billedSubscription(subscription);
  const current = currentPeriod(subscription);
  const measure = await usageReader(stores, database, subscription);
  const items = await gatherItems(database, subscription);
  const measured = await mapConcurrently(CHARGES_AT_ONCE, items, async (item): Promise<UsageCharge[]> => {
    const period = asked ?? runningPeriod(item, { subscription: billed, current, now: now.getTime() });
    const window = period ? usageWindowIn(period, item, billed) : null;
    if (window === null) return [];
    const usage = await measure(item, window);
    const { quantity, amount } = usageCharge(item, window, { measured: usage, currency: subscription.currency });
    return [{ item, quantity, amount }];
  });
  const charges = measured.flat();
  const period = asked ?? current;
  return { subscription, period, charges, amount: sumOf(charges.map((charge) => charge.amount)) };
}

/** The dates of the request; null where it leaves them to the periods of the items. */
function askedPeriod(subscription: SubscriptionModel, request: UsageRequest, now: Date): Period | null {
  const { start_time, end_time, lifetime_usage } = request;
  if (!start_time && !end_time && !lifetime_usage) return null;
  const current = currentPeriod(subscription);
  const start = lifetime_usage
    ? instantOf(subscription.start_date)
    : start_time
      ? instantOf(start_time)
      : current.start;
  const end = end_time ? instantOf(end_time) : lifetime_usage ? now.getTime() : current.end;
  if (end <= start) throw invalid('end_time', 'must be after start_time');
  return { start, end };
}
