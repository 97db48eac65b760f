/**
 * Usage and charges of a subscription for a period: every usage line item measured by the one usage reader and priced by
 * the one rating function, as on the invoice (decisions §16). Without dates it is the running period; an item with a
 * period of its own shows that.
 */
import { usageCharge } from '../core/billing/line-amount.ts';
import { type Decimal, sumOf } from '../core/decimal.ts';
import { invalid } from '../core/error.ts';
import type { Scope } from '../core/scope.ts';
import { instantOf, periodRuleOf } from '../core/subscription/calendar.ts';
import { type Period, periodContaining, type RecurringPeriod } from '../core/time/period.ts';
import { SubscriptionModel } from '../storage/models/subscription.ts';
import type { Stores } from '../storage/stores.ts';
import { type BillableItem, currentPeriod, gatherItems, usageReader } from './billable-items.ts';

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
  const measure = await usageReader(stores, database, subscription);
  const charges: UsageCharge[] = [];
  for (const item of await gatherItems(database, subscription)) {
    if (item.price_type !== 'USAGE') continue;
    const window = windowOf(item, subscription, { asked, now: now.getTime() });
    if (window === null) continue;
    const measured = await measure(item, window);
    const { quantity, amount } = usageCharge(item, window, { measured, currency: subscription.currency });
    charges.push({ item, quantity, amount });
  }
  const period = asked ?? currentPeriod(subscription);
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

function windowOf(
  item: BillableItem,
  subscription: SubscriptionModel,
  { asked, now }: { asked: Period | null; now: number },
): Period | null {
  const period = asked ?? runningPeriod(item, subscription, now);
  if (!period) return null;
  const from = item.reset_usage === 'NEVER' ? instantOf(subscription.start_date) : period.start;
  const start = Math.max(Math.min(from, period.start), item.start_ms);
  const end = Math.min(period.end, item.end_ms ?? Number.POSITIVE_INFINITY);
  return start < end ? { start, end } : null;
}

function runningPeriod(item: BillableItem, subscription: SubscriptionModel, now: number): Period | undefined {
  const current = currentPeriod(subscription);
  const isOwn =
    item.billing_period !== subscription.billing_period ||
    item.billing_period_count !== subscription.billing_period_count;
  if (!isOwn) return current;
  return periodContaining(Math.max(now, current.start), item.start_ms, {
    ...periodRuleOf(subscription),
    billing_anchor: item.start_ms,
    billing_period: item.billing_period as RecurringPeriod,
    billing_period_count: item.billing_period_count,
  });
}
