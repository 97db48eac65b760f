/**
 * Traces one event: its customer, the meters that it feeds, the prices of those meters, and the line items that bill them. For other meters
 * it names the rejecting filter, or why the value is unusable. It reads the records as they are now.
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Microseconds, type Milliseconds, toInstant, toMs } from '../../../core/foundation/time/instant.ts';
import { compileMeter, measure } from '../../../core/metering/compiled-meter.ts';
import type { Contribution, MeteredEvent } from '../../../core/metering/contribution.ts';
import { exactText } from '../../../core/metering/exact.ts';
import { explainMismatch, type FilterMismatch } from '../../../core/metering/match.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { toBilledSubscription } from '../../rating/billable-items.ts';

type TracedLineItem = {
  readonly record: SubscriptionLineItemModel;
  readonly timestamp_within_range: boolean;
  readonly is_active_for_event: boolean;
};

/** Quantity of the event on one line item. */
type FedLineItem = {
  readonly record: SubscriptionLineItemModel;
  readonly meter_id: string;
  readonly feature_id: string;
  readonly quantity: string;
};

export type EventTrace = {
  readonly customer: CustomerModel | null;
  readonly matched: readonly { meter: MeterModel; quantity: string }[];
  readonly refused: readonly ({ meter: MeterModel } & FilterMismatch)[];
  readonly unusable: readonly { meter: MeterModel; reason: string }[];
  readonly prices: readonly PriceModel[];
  readonly line_items: readonly TracedLineItem[];
  readonly fed: readonly FedLineItem[];
};

export async function traceEvent(
  database: Database,
  scope: Scope,
  event: MeteredEvent & { readonly event_name: string },
): Promise<EventTrace> {
  const [[customer = null], met] = await Promise.all([
    CustomerModel.in(scope, database).where({ external_id: event.external_customer_id, status: 'published' }),
    matchMeters(database, scope, event),
  ]);
  const meterIds = met.matched.map(({ meter }) => meter.id);
  // Archived prices are included: a price archived with its plan charged earlier events.
  const prices = await PriceModel.in(scope, database).whereIn('meter_id', meterIds).orderBy(['created_at', 'sequence']);
  const line_items = customer ? await listLineItems(database, { customer, prices, at_us: event.timestamp_us }) : [];
  const fed = await listFedLineItems(database, scope, { matched: met.matched, prices, line_items });
  return { customer, ...met, prices, line_items, fed };
}

type MeteredMatches = Pick<EventTrace, 'matched' | 'refused' | 'unusable'>;

async function matchMeters(
  database: Database,
  scope: Scope,
  event: MeteredEvent & { event_name: string },
): Promise<MeteredMatches> {
  const { event_name } = event;
  const meters = await MeterModel.in(scope, database)
    .where({ event_name, status: 'published' })
    .orderBy(['created_at', 'id']);
  const met = {
    matched: [] as { meter: MeterModel; quantity: string }[],
    refused: [] as ({ meter: MeterModel } & FilterMismatch)[],
    unusable: [] as { meter: MeterModel; reason: string }[],
  };
  for (const meter of meters) {
    const compiled = compileMeter(meter);
    const refusal = explainMismatch(compiled, event.properties);
    const contribution = refusal ? undefined : measure(compiled, event);
    if (refusal) met.refused.push({ meter, ...refusal });
    else if (contribution!.unusable !== undefined) met.unusable.push({ meter, reason: contribution!.unusable });
    else met.matched.push({ meter, quantity: computeQuantity(contribution as Contribution, compiled.multiplier) });
  }
  return met;
}

/** Computes the quantity of the event: the aggregated value, or 1 for a count. */
function computeQuantity({ value }: Contribution, multiplier: Decimal | undefined): string {
  if (value === undefined) return '1';
  const quantity = new Decimal(exactText(value));
  return (multiplier ? quantity.times(multiplier) : quantity).toFixed();
}

async function listLineItems(
  database: Database,
  { customer, prices, at_us }: { customer: CustomerModel; prices: readonly PriceModel[]; at_us: Microseconds },
): Promise<TracedLineItem[]> {
  const at_ms = toMs(at_us);
  const parents = await loadJoinedParents(database, customer, at_ms);
  const price_ids = prices.map(({ id }) => id);
  const records = await SubscriptionLineItemModel.in(customer, database)
    .where({ status: 'published', price_type: 'USAGE' })
    .where(
      (either) => void either.where({ customer_id: customer.id }).orWhereIn('subscription_id', [...parents.keys()]),
    )
    .whereIn('price_id', price_ids)
    .orderBy(['created_at', 'subscription_id', 'position', 'id']);
  const ids = records.map(({ subscription_id }) => subscription_id);
  const subscriptions = await SubscriptionModel.byId(customer, ids, database);
  return records.map((record) => {
    const subscription = subscriptions.get(record.subscription_id);
    const end = record.end_date ? toInstant(record.end_date) : Number.POSITIVE_INFINITY;
    const timestamp_within_range = at_ms >= toInstant(record.start_date) && at_ms < end;
    const isSubscriptionActive = subscription !== undefined && isActiveAt(subscription, at_ms);
    const hasJoined = parents.get(record.subscription_id) ?? true;
    return {
      record,
      timestamp_within_range,
      is_active_for_event: timestamp_within_range && isSubscriptionActive && hasJoined,
    };
  });
}

/** Parents that count the usage of the customer, by id, and whether the customer belonged to them at an instant. */
async function loadJoinedParents(
  database: Database,
  customer: CustomerModel,
  at_ms: Milliseconds,
): Promise<ReadonlyMap<string, boolean>> {
  const inherited = await SubscriptionModel.in(customer, database).where({
    customer_id: customer.id,
    subscription_type: 'INHERITED',
    status: 'published',
  });
  const parents = new Map<string, boolean>();
  for (const { parent_subscription_id: id, start_date, end_date } of inherited) {
    const isMember = at_ms >= toInstant(start_date) && (!end_date || at_ms < toInstant(end_date));
    if (id) parents.set(id, isMember || parents.get(id) === true);
  }
  return parents;
}

/** Whether a subscription bills events of an instant. A draft bills none; an ended subscription still bills events before its end. */
function isActiveAt(subscription: SubscriptionModel, at_ms: Milliseconds): boolean {
  if (subscription.subscription_status === 'draft') return false;
  const { start_ms, end_ms } = toBilledSubscription(subscription);
  return at_ms >= start_ms && (end_ms === null || at_ms < end_ms);
}

async function listFedLineItems(
  database: Database,
  scope: Scope,
  { matched, prices, line_items }: Pick<EventTrace, 'matched' | 'prices' | 'line_items'>,
): Promise<FedLineItem[]> {
  const meterOfPrice = new Map(prices.map(({ id, meter_id }) => [id, meter_id ?? '']));
  const quantities = new Map(matched.map(({ meter, quantity }) => [meter.id, quantity]));
  const features = await FeatureModel.in(scope, database)
    .whereIn('meter_id', [...quantities.keys()])
    .where('status', 'published')
    .orderBy(['created_at', 'id']);
  return line_items
    .filter(({ is_active_for_event }) => is_active_for_event)
    .map(({ record }) => {
      const meter_id = meterOfPrice.get(record.price_id)!;
      const feature_id = features.find((feature) => feature.meter_id === meter_id)?.id ?? '';
      return { record, meter_id, feature_id, quantity: quantities.get(meter_id)! };
    });
}
