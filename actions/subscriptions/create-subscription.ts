/**
 * Subscribes a customer to a plan: the record, its line items, the prices that it overrides and, unless it is a draft, the
 * opening invoice, all or nothing (docs/rules/subscriptions.md, "The opening").
 */

import { byId } from '../../core/by-id.ts';
import { invalid, notFound } from '../../core/error.ts';
import type { InvoiceWithLines } from '../../core/invoice/record.ts';
import { checkCurrency } from '../../core/money.ts';
import type { Plan } from '../../core/plan/record.ts';
import type { Price } from '../../core/price/record.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author, createdBy } from '../../core/stamp.ts';
import { type AheadQuestion, chargedOnce } from '../../core/subscription/ahead.ts';
import { firstPeriod } from '../../core/subscription/calendar.ts';
import {
  changesPrice,
  type LineItemTerms,
  lineItemOf,
  overriddenPrice,
  overridesByPrice,
  pricesToCopy,
} from '../../core/subscription/lines.ts';
import { refuseNotYet, refuseUsed } from '../../core/subscription/not-yet.ts';
import { paymentSettings } from '../../core/subscription/payment-settings.ts';
import type { CreateSubscription } from '../../core/subscription/record.ts';
import { checkThreshold, checkTrialTerms, trialDays } from '../../core/subscription/terms.ts';
import { instantOf } from '../../core/time/instant.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { MeterModel } from '../../storage/models/meter.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { PriceModel } from '../../storage/models/price.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Stores, Transaction } from '../../storage/stores.ts';
import { storePrice } from '../catalogue/create-price.ts';
import { openAndSettle } from '../invoices/open-and-settle.ts';
import { emit } from '../system-events/emit.ts';

export type NewSubscription = {
  subscription: SubscriptionModel;
  line_items: SubscriptionLineItemModel[];
  latest_invoice: InvoiceWithLines | null;
};

export async function createSubscription(
  stores: Stores,
  scope: Scope,
  request: CreateSubscription,
  author: Author,
): Promise<NewSubscription> {
  checkTrialTerms(request);
  return stores.postgres.transaction(async (transaction) => {
    const parties = await gather(scope, request, transaction);
    const terms = decide(request, parties, author.now.getTime());
    return apply(stores, transaction, { scope, request, author, ...parties, ...terms });
  });
}

type Parties = {
  customer: CustomerModel;
  plan: Plan;
  prices: Price[];
  extras: Map<string, Price>;
  meterNames: Map<string, string>;
  reset_usage: AheadQuestion['reset_usage'];
};

/** The rows of the customer and the plan are held, so that neither is archived meanwhile. */
async function gather(scope: Scope, request: CreateSubscription, database: Database): Promise<Parties> {
  const customer = await customerOf(scope, request, database);
  const plan = await PlanModel.fetchPublished(scope, request.plan_id, { database, lock: 'shared' });
  const prices = (await PriceModel.in(scope, database)
    .where({ entity_type: 'PLAN', entity_id: plan.id })
    .orderBy(['created_at', 'sequence'])) as Price[];
  const wanted = (request.line_items ?? []).flatMap((line) => line.price_id ?? []);
  const extras = (await PriceModel.in(scope, database).whereIn('id', wanted).where('status', 'published')) as Price[];
  const meterIds = [...prices, ...extras].flatMap((price) => price.meter_id ?? []);
  const meters = await MeterModel.byId(scope, meterIds, database);
  return {
    customer,
    plan,
    prices,
    extras: byId(extras),
    meterNames: new Map(Array.from(meters.values(), (meter) => [meter.id, meter.name])),
    reset_usage: new Map(Array.from(meters.values(), (meter) => [meter.id, meter.reset_usage])),
  };
}

async function customerOf(scope: Scope, request: CreateSubscription, database: Database): Promise<CustomerModel> {
  const { customer_id, external_customer_id } = request;
  if (!customer_id && !external_customer_id)
    throw invalid('customer_id', 'is required, or external_customer_id instead of it');
  const id = customer_id ?? (await CustomerModel.fetchExternal(scope, external_customer_id!, database)).id;
  const customer = await CustomerModel.fetchPublished(scope, id, { database, lock: true });
  if (external_customer_id && customer.external_id !== external_customer_id) {
    throw invalid('external_customer_id', `is not the external id of customer ${id}`);
  }
  return customer;
}

function decide(request: CreateSubscription, { customer, prices, reset_usage }: Parties, now: number) {
  const currency = checkCurrency(request.currency);
  const settings = paymentSettings(request);
  const billing = {
    currency,
    billing_cycle: request.billing_cycle ?? 'anniversary',
    billing_cadence: 'RECURRING' as const,
    billing_period: request.billing_period,
    billing_period_count: request.billing_period_count ?? 1,
    timezone: request.timezone ?? request.customer_timezone ?? customer.timezone,
    proration_behavior: request.proration_behavior ?? ('none' as const),
  };
  const { start_date, end_date, billing_anchor } = request;
  const calendar = firstPeriod({ ...billing, start_date, end_date, billing_anchor }, now);
  const start = instantOf(calendar.start_date);
  const end = calendar.end_date ? instantOf(calendar.end_date) : null;
  const billing_anchor_ms = instantOf(calendar.billing_anchor);
  const billed = { ...billing, start_ms: start, end_ms: end, billing_anchor_ms };
  const copied = chargedOnce(pricesToCopy(prices, currency, { start, end, now }), { billed, reset_usage, now });
  checkThreshold(request.auto_invoice_threshold, copied);
  refuseNotYet(request);
  refuseUsed({ trial_period_days: trialDays(request, copied) }, ['trial_period_days']);
  const overrides = overridesByPrice(request.override_line_items ?? [], copied);
  return { terms: { ...billing, ...calendar, ...settings }, copied, overrides };
}

type Decision = Parties & ReturnType<typeof decide> & { scope: Scope; request: CreateSubscription; author: Author };

async function apply(stores: Stores, transaction: Transaction, decision: Decision): Promise<NewSubscription> {
  const { request, author } = decision;
  const isDraft = request.subscription_status === 'draft';
  const opened = await addSubscription(decision, isDraft ? 'draft' : 'active', transaction);
  const line_items = await addLineItems(decision, opened, transaction);
  if (isDraft) {
    await emit(transaction, 'subscription.draft.created', { record: opened, by: author });
    return { subscription: opened, line_items, latest_invoice: null };
  }
  const settled = await openAndSettle(stores, transaction, { subscription: opened, author });
  await emit(transaction, 'subscription.created', { record: settled.subscription, by: author });
  return { ...settled, line_items };
}

function addSubscription(
  decision: Decision,
  status: 'draft' | 'active',
  database: Database,
): Promise<SubscriptionModel> {
  const { scope, request, author, customer, plan, prices, terms } = decision;
  const record = {
    ...terms,
    ...createdBy(author),
    id: newId('subscription', author.now.getTime()),
    customer_id: customer.id,
    plan_id: plan.id,
    lookup_key: request.lookup_key,
    subscription_status: status,
    subscription_type: 'STANDALONE',
    gateway_payment_method_id: request.gateway_payment_method_id,
    payment_terms: request.payment_terms,
    metadata: request.metadata,
    synced_price_sequence: Math.max(0, ...prices.map((price) => price.sequence)),
    version: 1,
  };
  const conflict = `a subscription with lookup_key ${request.lookup_key} exists already`;
  return SubscriptionModel.add(scope, record, { database, conflict });
}

/** The plan's prices in the order of their creation, then the extra lines in the order of the request. */
async function addLineItems(
  decision: Decision,
  subscription: SubscriptionModel,
  database: Database,
): Promise<SubscriptionLineItemModel[]> {
  const { scope, author, customer, plan, copied, overrides, request } = decision;
  const lines: LineItemTerms[] = [];
  for (const root of copied) {
    const override = overrides.get(root.id);
    const price =
      override && changesPrice(override) ? await addOverride(decision, { root, subscription }, database) : root;
    const entity = { entity_id: plan.id, entity_type: 'plan' as const, name: plan.name };
    lines.push(lineOf(decision, subscription, { price, entity, quantity: override?.quantity ?? null }));
  }
  for (const [index, stated] of (request.line_items ?? []).entries()) {
    const price = extraPrice(decision, stated.price_id, index);
    lines.push(
      lineOf(decision, subscription, { price, entity: entityOf(price, plan), quantity: stated.quantity, stated }),
    );
  }
  const records = lines.map((line, position) => ({
    ...line,
    ...createdBy(author),
    id: newId('subscription_line_item', author.now.getTime()),
    position,
    subscription_id: subscription.id,
    customer_id: customer.id,
  }));
  return SubscriptionLineItemModel.addAll(scope, records, { database });
}

type LineChoice = Pick<Parameters<typeof lineItemOf>[0], 'price' | 'entity' | 'quantity' | 'stated'>;

function lineOf({ author, meterNames }: Decision, subscription: SubscriptionModel, choice: LineChoice): LineItemTerms {
  const meter_name = choice.price.meter_id ? (meterNames.get(choice.price.meter_id) ?? null) : null;
  return lineItemOf({ ...choice, subscription, meter_name, now: author.now.getTime() });
}

async function addOverride(
  { scope, author, overrides }: Decision,
  { root, subscription }: { root: Price; subscription: SubscriptionModel },
  database: Database,
): Promise<Price> {
  const price = overriddenPrice(root, overrides.get(root.id)!, subscription.id);
  return storePrice(price, { scope, database, author });
}

function extraPrice({ extras, terms }: Decision, price_id: string | null, index: number): Price {
  if (!price_id) throw invalid(`line_items[${index}].price_id`, 'is required');
  const price = extras.get(price_id);
  if (!price) throw notFound('price', price_id);
  if (price.currency !== terms.currency) {
    throw invalid(`line_items[${index}].price_id`, `is in ${price.currency}, the subscription in ${terms.currency}`);
  }
  return price;
}

function entityOf(price: Price, plan: Plan): LineChoice['entity'] {
  const entity_id = price.entity_id ?? '';
  if (price.entity_type === 'PLAN')
    return { entity_id, entity_type: 'plan', name: entity_id === plan.id ? plan.name : null };
  return { entity_id, entity_type: price.entity_type === 'ADDON' ? 'addon' : 'subscription', name: null };
}
