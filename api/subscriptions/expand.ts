/** Subscriptions with the parts that are asked for: one query per part, however many subscriptions. */
import { byId } from '../../core/by-id.ts';
import type { InvoiceWithLines } from '../../core/invoice/record.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { MeterModel } from '../../storage/models/meter.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { PriceModel } from '../../storage/models/price.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import type { Context } from '../http/route.ts';
import { showPlans } from '../plans/expand.ts';
import { showPrices } from '../prices/expand.ts';

/** What one subscription shows: plan, customer and line items with their prices. */
export const EVERY_PART = ['plan', 'customer', 'subscription_line_items', 'prices'];

export const subscriptionExpand = [
  'plan',
  'plan.prices',
  'customer',
  'prices',
  'prices.meters',
  'meters',
  'schedule',
  'coupon_associations',
  'coupon_associations.coupon',
  'coupon',
  'subscription_line_items',
  'subscription_line_items.prices',
  'subscription_line_items.prices.meters',
  'subscription_line_items.meters',
  'entitlements',
];

export async function showSubscriptions(
  subscriptions: readonly SubscriptionModel[],
  expand: readonly string[],
  context: Context,
) {
  const asks = (part: string) => expand.some((path) => path === part || path.startsWith(`${part}.`));
  const plans = asks('plan') ? await plansOf(subscriptions, expand, context) : new Map();
  const customers = asks('customer') ? await customersOf(subscriptions, context) : new Map();
  const withLines = asks('subscription_line_items') || asks('prices') || asks('meters');
  const lines = withLines ? await linesOf(subscriptions, expand, context) : null;
  return subscriptions.map((subscription) => ({
    ...subscription,
    customer_timezone: subscription.timezone,
    pause_status: 'none',
    plan: plans.get(subscription.plan_id) ?? null,
    customer: customers.get(subscription.customer_id) ?? null,
    line_items: lines === null ? null : lines.filter((line) => line.subscription_id === subscription.id),
    coupon_associations: asks('coupon_associations') ? [] : null,
    entitlements: asks('entitlements') ? [] : null,
  }));
}

export async function showSubscription(
  subscription: SubscriptionModel,
  context: Context,
  latest_invoice: InvoiceWithLines | null = null,
) {
  const [shown] = await showSubscriptions([subscription], EVERY_PART, context);
  return { ...shown!, latest_invoice };
}

export async function showLineItems(
  items: readonly SubscriptionLineItemModel[],
  { prices, meters }: { prices: boolean; meters: boolean },
  context: Context,
) {
  const { scope, services } = context;
  const priceIds = prices ? items.map(({ price_id }) => price_id) : [];
  const wanted = [...(await PriceModel.byId(scope, priceIds, services.postgres)).values()];
  const shownPrices = byId(await showPrices(wanted, meters ? ['meters'] : [], context));
  const meterIds = meters ? items.map(({ meter_id }) => meter_id) : [];
  const metersById = await MeterModel.byId(scope, meterIds, services.postgres);
  return items.map((item) => ({
    ...item,
    trial_period: item.trial_period_days,
    price: shownPrices.get(item.price_id) ?? null,
    meter: metersById.get(item.meter_id ?? '') ?? null,
  }));
}

async function plansOf(subscriptions: readonly SubscriptionModel[], expand: readonly string[], context: Context) {
  const { scope, services } = context;
  const ids = subscriptions.map(({ plan_id }) => plan_id);
  const plans = await PlanModel.byId(scope, ids, services.postgres);
  return byId(await showPlans([...plans.values()], expand.includes('plan.prices') ? ['prices'] : [], context));
}

async function customersOf(subscriptions: readonly SubscriptionModel[], { scope, services }: Context) {
  const ids = subscriptions.map(({ customer_id }) => customer_id);
  return CustomerModel.byId(scope, ids, services.postgres);
}

async function linesOf(subscriptions: readonly SubscriptionModel[], expand: readonly string[], context: Context) {
  const { scope, services } = context;
  const ids = subscriptions.map(({ id }) => id);
  const items = await SubscriptionLineItemModel.in(scope, services.postgres)
    .where('status', 'published')
    .whereIn('subscription_id', ids)
    .orderBy('position');
  return showLineItems(items, partsOfLines(expand), context);
}

export function partsOfLines(expand: readonly string[]) {
  return {
    prices: expand.some((path) => /(^|\.)prices(\.|$)/.test(path) && !path.startsWith('plan.')),
    meters: expand.some((path) => /(^|\.)meters$/.test(path)),
  };
}
