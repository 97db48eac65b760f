/** Loads the requested parts of subscriptions with one query per part, regardless of the number of subscriptions. */
import { listEntitledBySubscription } from '../../actions/rating/allowances/entitled-features.ts';
import { indexById } from '../../core/foundation/by-id.ts';
import { groupBy } from '../../core/foundation/group-by.ts';
import type { InvoiceWithLines } from '../../core/invoicing/invoice/record.ts';
import { PlanModel } from '../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../storage/models/catalog/price.ts';
import { narrow } from '../../storage/models/foundation/page.ts';
import { prepareQuery } from '../../storage/models/foundation/prepared.ts';
import { loadLines } from '../../storage/models/invoicing/load-lines.ts';
import { MeterModel } from '../../storage/models/metering/meter.ts';
import { CouponAssociationModel } from '../../storage/models/subscriptions/coupon-association.ts';
import type { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscriptions/subscription-line-item.ts';
import { SubscriptionPhaseModel } from '../../storage/models/subscriptions/subscription-phase.ts';
import { SubscriptionScheduleModel } from '../../storage/models/subscriptions/subscription-schedule.ts';
import { showCouponAssociations } from '../catalog/coupons/answer.ts';
import { loadCustomersById } from '../catalog/customers/expand.ts';
import { showPlans } from '../catalog/plans/expand.ts';
import { showPrices } from '../catalog/prices/expand.ts';
import type { Context } from '../http/route.ts';
import { showEntitled } from '../rating/entitlements/entitled.ts';
import { loadGrantsBySubscription } from './credit-grants.ts';
import { showSchedule } from './show-schedule.ts';

/** Parts that a single subscription is answered with: plan, customer, line items with their prices, and coupons. */
export const EVERY_PART = ['plan', 'customer', 'subscription_line_items', 'prices', 'coupon_associations'];

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

/** Lines of the subscriptions that the caller has read. Without them they are loaded. */
type ReadLines = { readonly line_items?: readonly SubscriptionLineItemModel[] | undefined };

export async function showSubscriptions(
  subscriptions: readonly SubscriptionModel[],
  expand: readonly string[],
  context: Context,
  { line_items }: ReadLines = {},
) {
  const asks = (part: string) => expand.some((path) => path === part || path.startsWith(`${part}.`));
  const withLines = asks('subscription_line_items') || asks('prices') || asks('meters');
  // A subscription may have many lines, so they are read by themselves (storage/models/invoicing/load-lines.ts).
  const items = withLines ? (line_items ?? (await loadLinesOfSubscriptions(subscriptions, context))) : null;
  const withCoupons = asks('coupon_associations') || asks('coupon');
  const plans = asks('plan') ? await showPlansById(subscriptions, expand, context) : null;
  const customers = asks('customer') ? await loadCustomersById(subscriptions, context) : null;
  const lines = items && (await showLinesBySubscription(items, expand, context));
  const coupons = withCoupons ? await showCouponsBySubscription(subscriptions, context) : null;
  const schedules = asks('schedule') ? await showSchedulesBySubscription(subscriptions, context) : null;
  const phases = await loadPhasesBySubscription(subscriptions, context);
  const grants = await loadGrantsBySubscription(subscriptions, context);
  const entitlements = asks('entitlements') ? await showEntitlementsBySubscription(subscriptions, context) : null;
  return subscriptions.map((subscription) => ({
    ...subscription,
    customer_timezone: subscription.timezone,
    pause_status: 'none',
    schedule: schedules?.get(subscription.id) ?? null,
    plan: plans?.get(subscription.plan_id) ?? null,
    customer: customers?.get(subscription.customer_id) ?? null,
    line_items: lines && (lines.get(subscription.id) ?? []),
    phases: phases.get(subscription.id) ?? [],
    coupon_associations: coupons && (coupons.get(subscription.id) ?? []),
    entitlements: entitlements && (entitlements.get(subscription.id) ?? []),
    credit_grants: grants.get(subscription.id) ?? [],
  }));
}

export async function showSubscription(
  subscription: SubscriptionModel,
  context: Context,
  { latest_invoice = null, ...lines }: ReadLines & { readonly latest_invoice?: InvoiceWithLines | null } = {},
) {
  const [shown] = await showSubscriptions([subscription], EVERY_PART, context, lines);
  return { ...shown!, latest_invoice };
}

export async function showLineItems(
  items: readonly SubscriptionLineItemModel[],
  { prices, meters, of_prices = [] }: LineParts,
  context: Context,
) {
  const { scope, services } = context;
  const priceIds = prices ? items.map(({ price_id }) => price_id) : [];
  const wanted = [...(await PriceModel.byId(scope, priceIds, services.postgres)).values()];
  const shownPrices = indexById(await showPrices(wanted, [...(meters ? ['meters'] : []), ...of_prices], context));
  const meterIds = meters ? items.map(({ meter_id }) => meter_id) : [];
  const metersById = await MeterModel.byId(scope, meterIds, services.postgres);
  return items.map((item) => ({
    ...item,
    trial_period: item.trial_period_days,
    price: shownPrices.get(item.price_id) ?? null,
    meter: metersById.get(item.meter_id ?? '') ?? null,
  }));
}

async function showPlansById(subscriptions: readonly SubscriptionModel[], expand: readonly string[], context: Context) {
  const { scope, services } = context;
  const ids = subscriptions.map(({ plan_id }) => plan_id);
  const plans = await PlanModel.byId(scope, ids, services.postgres);
  return indexById(await showPlans([...plans.values()], expand.includes('plan.prices') ? ['prices'] : [], context));
}

async function showEntitlementsBySubscription(subscriptions: readonly SubscriptionModel[], context: Context) {
  const { scope, services, now } = context;
  const reading = { scope, database: services.postgres, now };
  const found = Array.from(await listEntitledBySubscription(subscriptions, reading), ([id, entries]) =>
    entries.map((entry) => ({ id, entry })),
  ).flat();
  const entries = found.map(({ entry }) => entry);
  const shown = (await showEntitled(entries, context)).map((one, index) => ({ one, id: found[index]!.id }));
  const byId = groupBy(shown, ({ id }) => id);
  return new Map(Array.from(byId, ([id, of]) => [id, of.map(({ one }) => one)]));
}

async function loadPhasesBySubscription(subscriptions: readonly SubscriptionModel[], { scope, services }: Context) {
  const ids = subscriptions.map(({ id }) => id);
  const query = SubscriptionPhaseModel.in(scope, services.postgres)
    .where('status', 'published')
    .whereIn('subscription_id', ids)
    .orderBy(['subscription_id', 'start_date']);
  const phases = await prepareQuery(query);
  return groupBy(phases, ({ subscription_id }) => subscription_id);
}

/** Shows the pending schedules by subscription. A subscription has at most one. */
async function showSchedulesBySubscription(
  subscriptions: readonly SubscriptionModel[],
  { scope, services, now }: Context,
) {
  const pending = await SubscriptionScheduleModel.in(scope, services.postgres)
    .whereIn(
      'subscription_id',
      subscriptions.map(({ id }) => id),
    )
    .where('status', 'pending');
  return new Map(pending.map((schedule) => [schedule.subscription_id, showSchedule(schedule, now)]));
}

/** Coupons that have not ended, including those that have not begun. */
async function showCouponsBySubscription(subscriptions: readonly SubscriptionModel[], context: Context) {
  const { scope, services, now } = context;
  const openAssociations = narrow(CouponAssociationModel.in(scope, services.postgres), [
    ['subscription_id', 'in', subscriptions.map(({ id }) => id)],
    ['status', 'published'],
    ['end_date', 'open at', now],
  ]);
  const associations = await openAssociations.orderBy(['subscription_id', 'created_at', 'id']);
  const shown = await showCouponAssociations(associations, ['coupon'], context);
  return groupBy(shown, ({ subscription_id }) => subscription_id);
}

/** Loads the lines of subscriptions, those of one in the order of their positions. */
export async function loadLinesOfSubscriptions(
  subscriptions: readonly SubscriptionModel[],
  { scope, services }: Context,
): Promise<SubscriptionLineItemModel[]> {
  const ids = subscriptions.map(({ id }) => id);
  const wanted = { model: SubscriptionLineItemModel, parent: 'subscription_id', ids } as const;
  return [...(await loadLines(scope, wanted, services.postgres)).values()].flat();
}

async function showLinesBySubscription(
  items: readonly SubscriptionLineItemModel[],
  expand: readonly string[],
  context: Context,
) {
  const shown = await showLineItems(items, parseLineParts(expand), context);
  return groupBy(shown, ({ subscription_id }) => subscription_id);
}

type LineParts = { prices: boolean; meters: boolean; of_prices?: readonly string[] };

/**
 * Parses the parts of line items to expand: `prices.plan` is the plan of their prices, `plan.prices` the prices of the
 * plan.
 */
export function parseLineParts(expand: readonly string[]): LineParts {
  const ofPrices = expand.filter((path) => /(^|\.)prices(\.|$)/.test(path) && !path.startsWith('plan.'));
  return {
    prices: ofPrices.length > 0,
    meters: expand.some((path) => /(^|\.)meters$/.test(path)),
    of_prices: ofPrices.flatMap((path) => /prices\.(priceunit|plan|addons|groups)$/.exec(path)?.[1] ?? []),
  };
}
