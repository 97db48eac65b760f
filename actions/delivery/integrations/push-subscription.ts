/**
 * Pushes a subscription to a provider of deals, after the customer that pays it. The amount is that of its start; later only its status is
 * sent (docs/integrations/hubspot.md, "Deals").
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { computeRecurringAmount } from '../../../core/platform/integration/pushed-subscription.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { intendMapping } from '../../foundation/connections/mappings.ts';
import { withClaim } from '../../foundation/connections/push-claims.ts';
import {
  ensureProviderCustomer,
  NothingToSend,
  type PushTarget,
  pushIntended,
} from '../../foundation/connections/push-record.ts';
import { requireRecord } from '../../rating/billable-items.ts';

export async function pushSubscription(
  stores: Postgres,
  scope: Scope,
  subscription_id: string,
  target: PushTarget,
): Promise<IntegrationMappingModel> {
  const database = stores.postgres;
  const subscription = await SubscriptionModel.fetchPublished(scope, subscription_id, { database });
  const entity = { entity_type: 'subscription', entity_id: subscription_id } as const;
  const key = { connection_id: target.connection.id, ...entity };
  const known = await IntegrationMappingModel.findCurrent(scope, key, { database });
  if (known?.mapping_state === 'made') return updateThere(stores, known, target);
  checkSendable(subscription);
  const { customer_id, invoicing_customer_id, currency, start_date, subscription_status } = subscription;
  const payer_id = invoicing_customer_id ?? customer_id;
  const provider_customer_id = await ensureProviderCustomer(stores, scope, payer_id, target);
  const mapping = known ?? (await intendMapping(stores, scope, { ...target, entity }));
  const name = await describeSubscription(stores, subscription, payer_id);
  const amount = (await loadAmount(stores, subscription)).toFixed();
  return pushIntended(stores, mapping, target, (account, pushed) =>
    account.pushSubscription!({
      ...pushed,
      subscription_id,
      customer_id: payer_id,
      provider_customer_id,
      name,
      amount,
      currency,
      start_date,
      subscription_status,
    }),
  );
}

/** Sends the status, which is read after the claim, so that of two attempts at once the later one sends the later status. */
async function updateThere(
  stores: Postgres,
  mapping: IntegrationMappingModel,
  { call }: PushTarget,
): Promise<IntegrationMappingModel> {
  return withClaim(stores, mapping, async (claimed) => {
    const { subscription_status } = await SubscriptionModel.fetchPublished(claimed, claimed.entity_id, {
      database: stores.postgres,
    });
    await call((account) => account.updateSubscription!(claimed.provider_entity_id!, { subscription_status }));
    return claimed;
  });
}

/** Refuses a draft, which may change, and an inherited subscription, which its parent pays. */
function checkSendable({ id, subscription_status, subscription_type }: SubscriptionModel): void {
  const details = { subscription_id: id };
  if (subscription_status === 'draft')
    throw new NothingToSend('a subscription that is a draft is not sent to a provider', details);
  if (subscription_type === 'INHERITED')
    throw new NothingToSend('an inherited subscription is not sent to a provider: its parent has the prices', details);
}

async function describeSubscription(
  { postgres: database }: Postgres,
  subscription: SubscriptionModel,
  payer_id: string,
): Promise<string> {
  const plan = await PlanModel.fetch(subscription, subscription.plan_id, { database });
  const { name, external_id } = await CustomerModel.fetch(subscription, payer_id, { database });
  return `${name || external_id} – ${plan.name}`;
}

async function loadAmount({ postgres }: Postgres, subscription: SubscriptionModel) {
  const records = await SubscriptionLineItemModel.in(subscription, postgres).where({
    subscription_id: subscription.id,
    status: 'published',
    price_type: 'FIXED',
  });
  const ids = records.map(({ price_id }) => price_id);
  const prices = await PriceModel.byId(subscription, ids, postgres);
  const lines = records.map((record) => ({ ...record, price: requireRecord(prices, record.price_id, 'price') }));
  return computeRecurringAmount(subscription, lines);
}
