/** Gathers what a new subscription is made of: its customer, plan and prices, locked against archival. */
import type { FormerHolder } from '../../../core/catalog/customer/former-holder.ts';
import type { Plan } from '../../../core/catalog/plan/record.ts';
import type { Price } from '../../../core/catalog/price/record.ts';
import { indexById } from '../../../core/foundation/by-id.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { priceReset } from '../../../core/metering/price-reset.ts';
import type { ScheduledPriceInput } from '../../../core/subscriptions/ahead.ts';
import type { CreateSubscription } from '../../../core/subscriptions/record.ts';
import { loadAll } from '../../../storage/concurrency/batched.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import type { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { prepareQuery } from '../../../storage/models/foundation/prepared.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { GivenUpExternalIdModel } from '../../../storage/models/subscriptions/given-up-external-id.ts';
import { loadRequestedCustomer } from '../../subscriptions/load-requested-customer.ts';

export type SubscriptionParties = {
  customer: CustomerModel;
  former: FormerHolder | null;
  plan: Plan;
  prices: Price[];
  extras: Map<string, Price>;
  meters: ReadonlyMap<string, MeterModel>;
  reset_usage: ScheduledPriceInput['reset_usage'];
};

type GatherInput<Family> = {
  readonly request: CreateSubscription;
  /** Gathers and checks the hierarchy of the subscription. */
  readonly gatherFamily: (customer: CustomerModel, database: Database) => Promise<Family>;
};

/** Gathers the input. The locks on customer and plan prevent their archival meanwhile. */
export async function gatherParties<Family>(
  scope: Scope,
  { request, gatherFamily }: GatherInput<Family>,
  database: Database,
): Promise<SubscriptionParties & { family: Family }> {
  const lines = [request, ...(request.phases ?? [])].flatMap((terms) => terms.line_items ?? []);
  const wanted = lines.flatMap((line) => line.price_id ?? []);
  const customer = await loadRequestedCustomer(scope, request, database);
  const plan = await PlanModel.fetchPublished(scope, request.plan_id, { database, lock: 'shared' });
  // Prices are read under the lock of their plan: one that was added while the lock was awaited is among them.
  const [prices, extras, former, family] = await loadAll(database, [
    (connected) => listPlanPrices(scope, request.plan_id, connected),
    wanted.length > 0 ? (connected) => listNamedPrices(scope, wanted, connected) : null,
    (connected) => GivenUpExternalIdModel.formerHolder(scope, customer, connected),
    (connected) => gatherFamily(customer, connected),
  ]);
  const inline = lines.flatMap((line) => line.price ?? []);
  const meterIds = [...prices, ...(extras ?? []), ...inline].flatMap((price) => price.meter_id ?? []);
  const meters = await MeterModel.byId(scope, meterIds, database);
  return {
    family,
    customer,
    former,
    plan,
    prices,
    extras: indexById(extras ?? []),
    meters,
    reset_usage: new Map(Array.from(meters.values(), (meter) => [meter.id, priceReset(meter)])),
  };
}

async function listPlanPrices(scope: Scope, plan_id: string, database: Database): Promise<PriceModel[]> {
  const query = PriceModel.in(scope, database)
    .where({ entity_type: 'PLAN', entity_id: plan_id })
    .orderBy(['created_at', 'sequence']);
  return await prepareQuery(query);
}

async function listNamedPrices(scope: Scope, ids: readonly string[], database: Database): Promise<PriceModel[]> {
  return PriceModel.in(scope, database)
    .whereIn('id', [...ids])
    .where('status', 'published');
}
