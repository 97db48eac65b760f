/**
 * Subscription line items for usage analytics, for any number of customers in a few queries. The dates of a line item and the cancellation
 * of its subscription bound its usage (docs/rules/usage.md, "Analytics").
 */

import { indexById } from '../../../core/foundation/by-id.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Microseconds, toInstant, toMs, toUs } from '../../../core/foundation/time/instant.ts';
import type { PricedItem } from '../../../core/rating/line-amount.ts';
import type { SubscriptionMember } from '../../../core/subscriptions/members.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { prepareQuery } from '../../../storage/models/foundation/prepared.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { type Allowances, loadAllowances } from '../../rating/allowances/gather-allowances.ts';
import {
  deriveChainTerms,
  deriveCommitment,
  requireRecord,
  toBilledSubscription,
  withCommittedLines,
} from '../../rating/billable-items.ts';
import { loadMembers } from '../../rating/members.ts';

/** A usage line item, and the part of the queried range in which it is active. */
export type AnalyticsItem = PricedItem & {
  readonly line_item: SubscriptionLineItemModel;
  readonly price: PriceModel;
  readonly meter: MeterModel;
  readonly subscription: SubscriptionModel;
  readonly external_customer_id: string;
  /** Customers whose usage the item counts, including those that inherit the subscription. */
  readonly members: readonly SubscriptionMember[];
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
};

type AnalyticsItemsQuery = {
  customers: readonly CustomerModel[] | null;
  /** Meters that are not read again. */
  loaded_meters?: ReadonlyMap<string, MeterModel>;
  start_us: Microseconds;
  end_us: Microseconds;
  now: Date;
};

export async function gatherAnalyticsItems(
  database: Database,
  scope: Scope,
  query: AnalyticsItemsQuery,
): Promise<AnalyticsItem[]> {
  const subscriptions = await listSubscriptions(database, scope, query.customers);
  const linesQuery = SubscriptionLineItemModel.in(scope, database)
    .whereIn('subscription_id', ids(subscriptions))
    .where({ status: 'published', price_type: 'USAGE' })
    .orderBy(['created_at', 'subscription_id', 'position', 'id']);
  const lines = await prepareQuery(linesQuery);
  const priceIds = lines.map(({ price_id }) => price_id);
  const prices = await PriceModel.byId(scope, priceIds, database);
  const loaded = query.loaded_meters ?? new Map<string, MeterModel>();
  const meterIds = Array.from(prices.values(), ({ meter_id }) => meter_id);
  const others = await MeterModel.byId(
    scope,
    meterIds.filter((id) => !loaded.has(id ?? '')),
    database,
  );
  const customerIds = subscriptions.map(({ customer_id }) => customer_id);
  const customers = query.customers
    ? indexById(query.customers)
    : await CustomerModel.byId(scope, customerIds, database);
  const bySubscription = indexById(subscriptions);
  const members = await loadMembers(database, scope, subscriptions, customers);
  const at = new Date(Math.min(query.now.getTime(), toMs(query.end_us) - 1));
  const allowances: Allowances = lines.length === 0 ? new Map() : await loadAllowances(database, subscriptions, at);
  const items = lines.map((record) => {
    const subscription = requireRecord(bySubscription, record.subscription_id, 'subscription');
    const price = requireRecord(prices, record.price_id, 'price');
    const meter = loaded.get(price.meter_id ?? '') ?? requireRecord(others, price.meter_id ?? '', 'meter');
    return { ...buildPricedItem(record, { price, meter, subscription }), subscription };
  });
  return withCommittedLines(items).flatMap((item) => {
    const { line_item, subscription, meter } = item;
    const { external_id } = requireRecord(customers, subscription.customer_id, 'customer');
    const life = computeActiveInterval(line_item, subscription, query);
    return life === null
      ? []
      : [
          {
            ...item,
            ...life,
            allowances: allowances.get(subscription.id)?.get(meter.id) ?? [],
            external_customer_id: external_id,
            members: members.get(subscription.id)!,
          },
        ];
  });
}

function listSubscriptions(database: Database, scope: Scope, customers: readonly CustomerModel[] | null) {
  const subscriptions = SubscriptionModel.in(scope, database)
    .where('status', 'published')
    .whereNot('subscription_status', 'draft');
  if (customers) void subscriptions.whereIn('customer_id', ids(customers));
  return prepareQuery(subscriptions);
}

/** Computes the part of the range in which the line is billed; null if there is none. A trial is never billed. */
function computeActiveInterval(
  record: SubscriptionLineItemModel,
  subscription: SubscriptionModel,
  query: AnalyticsItemsQuery,
) {
  const { end_ms } = toBilledSubscription(subscription);
  const begins = [record.start_date, subscription.trial_end].flatMap((at) => (at ? [toUs(toInstant(at))] : []));
  const ends = [
    record.end_date,
    subscription.cancelled_at && subscription.subscription_status === 'cancelled' ? subscription.cancelled_at : null,
  ];
  const start_us = Math.max(query.start_us, ...begins);
  const end_us = Math.min(
    query.end_us,
    end_ms === null ? Number.POSITIVE_INFINITY : toUs(end_ms),
    ...ends.flatMap((at) => (at ? [toUs(toInstant(at))] : [])),
  );
  return start_us < end_us ? { start_us, end_us } : null;
}

type AnalyticsItemParts = { price: PriceModel; meter: MeterModel; subscription: SubscriptionModel };

function buildPricedItem(record: SubscriptionLineItemModel, { price, meter, subscription }: AnalyticsItemParts) {
  const { trial_end } = subscription;
  return {
    id: record.id,
    price_type: record.price_type,
    invoice_cadence: record.invoice_cadence,
    billing_period: record.billing_period,
    billing_period_count: record.billing_period_count,
    start_ms: Math.max(toInstant(record.start_date), trial_end ? toInstant(trial_end) : Number.NEGATIVE_INFINITY),
    end_ms: record.end_date ? toInstant(record.end_date) : null,
    reset_usage: meter.reset_usage,
    price,
    quantity: new Decimal(record.quantity),
    display_name: record.display_name || record.meter_display_name || meter.name,
    meter_id: meter.id,
    commitment: deriveCommitment(record, meter, subscription),
    chain_terms: deriveChainTerms(record, meter, subscription),
    line_item: record,
    meter,
  };
}

function ids(records: readonly { id: string }[]): string[] {
  return records.map(({ id }) => id);
}
