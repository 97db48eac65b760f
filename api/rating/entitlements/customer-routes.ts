/** Entitlements of a customer, and its usage against them. */
import { z } from 'zod';
import {
  type EntitlementReadContext,
  listEntitledFeatures,
  listGrantingSubscriptions,
} from '../../../actions/rating/allowances/entitled-features.ts';
import { checkUsageReferences, listFeatureIdsByLookupKey } from '../../../actions/rating/entitlements/check-named.ts';
import type { UsageAgainstLimit } from '../../../actions/rating/entitlements/feature-usage.ts';
import { buildUsageRefresh, gatherLimitedUsage } from '../../../actions/rating/entitlements/limited-usage.ts';
import { invalid } from '../../../core/foundation/error.ts';
import type { ReadCached } from '../../../storage/cache/cache-entry.ts';
import { loadCached } from '../../../storage/cache/cached-answers.ts';
import type { GatherContext } from '../../../storage/cache/gather-batch-loader.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { matchAny } from '../../http/list.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import type { AnswerMoment, CachedAnswerRead } from '../../http/serialized-cache.ts';
import {
  CustomerEntitlementsAnswer,
  CustomerUsageAnswer,
  showEntitled,
  showLimitedUsage,
  showUsed,
} from './entitled.ts';

const tag = 'Customers';

const CustomerEntitlementsQuery = z.object({
  feature_ids: matchAny('features'),
  subscription_ids: matchAny('subscriptions'),
});
type CustomerEntitlementsQuery = z.output<typeof CustomerEntitlementsQuery>;

const CustomerUsageQuery = CustomerEntitlementsQuery.extend({
  customer_id: z.string().optional().meta({ description: 'Id of the customer.' }),
  customer_lookup_key: z.string().optional().meta({ description: 'External id of the customer.' }),
  feature_lookup_keys: matchAny('lookup keys of features'),
});
type CustomerUsageQuery = z.output<typeof CustomerUsageQuery>;

const VIEW =
  'Returns the features that the active or trialing subscriptions of the customer grant, combined and by source: plans, add-ons times quantity, and entitlements of the subscription itself. An inherited subscription grants the entitlements of its parent.';

export const customerEntitlementRoutes: Route[] = [
  route({
    method: 'get',
    path: '/customers/:id/entitlements',
    operation_id: 'getCustomerEntitlements',
    summary: 'Get customer entitlements',
    description: VIEW,
    tag,
    access: 'entitlement:read',
    params: idParams,
    query: CustomerEntitlementsQuery,
    success: 200,
    answer: CustomerEntitlementsAnswer,
    readCached: ({ params, query }, { cache }) => {
      const known = cache.find<object>(entitledKey(params.id, query));
      return known && { of: [known], show: showUnchanged };
    },
    handle: async ({ params, query }, context) => {
      const { scope, services, now } = context;
      const cacheRequest = { ...scope, key: entitledKey(params.id, query), now };
      const make = async (gathering: GatherContext) => {
        const within = gatheredIn(context, gathering);
        const customer = await CustomerModel.fetch(scope, params.id, gathering);
        return { answer: await showCustomerEntitlements(customer, query, within) };
      };
      return (await loadCached(services, cacheRequest, make)).answer;
    },
  }),
  route({
    method: 'get',
    path: '/customers/external/:external_id/entitlements',
    operation_id: 'getCustomerEntitlementsByExternalId',
    summary: 'Get customer entitlements by external id',
    description: VIEW,
    tag,
    access: 'entitlement:read',
    params: z.object({
      external_id: z.string().min(1).meta({ description: 'External id of the customer.' }),
    }),
    query: CustomerEntitlementsQuery,
    success: 200,
    answer: CustomerEntitlementsAnswer,
    handle: async ({ params, query }, context) => {
      const { scope, services } = context;
      const customer = await CustomerModel.fetchExternal(scope, params.external_id, services.postgres);
      return showCustomerEntitlements(customer, query, context);
    },
  }),
  route({
    method: 'get',
    path: '/customers/usage',
    operation_id: 'getCustomerUsageSummary',
    summary: 'Get customer usage',
    description:
      'Returns the usage of each metered feature since its last reset, with its limit. One of `customer_id` and `customer_lookup_key` is required.',
    tag,
    access: 'entitlement:read',
    query: CustomerUsageQuery,
    success: 200,
    answer: CustomerUsageAnswer,
    readCached: ({ query }, { cache }) => {
      const known = cache.find<CachedCustomerUsage>(usageKey(query));
      return known && toCachedUsageRead(known, cache.as_of);
    },
    handle: async ({ query }, context) => showCustomerUsage(query, context),
  }),
  route({
    method: 'get',
    path: '/customers/:id/usage',
    operation_id: 'getCustomerUsageById',
    summary: 'Get customer usage by id',
    description: 'Returns the same as `GET /customers/usage`, for the customer in the path.',
    tag,
    access: 'entitlement:read',
    params: idParams,
    query: CustomerUsageQuery,
    success: 200,
    answer: CustomerUsageAnswer,
    handle: async ({ params, query }, context) => {
      if (query.customer_id && query.customer_id !== params.id)
        throw invalid('customer_id', 'is not the customer of the path');
      return showCustomerUsage({ ...query, customer_id: params.id }, context);
    },
  }),
];

async function showCustomerEntitlements(customer: CustomerModel, query: CustomerEntitlementsQuery, context: Context) {
  const reading = toReading(context);
  await checkUsageReferences(customer.id, query, reading);
  const subscriptions = await listGrantingSubscriptions(customer.id, query.subscription_ids, reading);
  const entitled = await listEntitledFeatures(subscriptions, query.feature_ids, reading);
  return { customer_id: customer.id, features: await showEntitled(entitled, context) };
}

/** The answer is cached and updated as usage arrives (docs/decisions/0007-cached-answers.md). */
async function showCustomerUsage(query: CustomerUsageQuery, context: Context) {
  const { scope, services, now } = context;
  const cacheRequest = { ...scope, key: usageKey(query), now };
  const { answer, as_of } = await loadCached(services, cacheRequest, (gathering) =>
    makeUsage(query, context, gathering),
  );
  return withUsed(answer.shown, { used: answer.used.map(showUsed), as_of });
}

/**
 * A cached answer in two parts: `shown` does not depend on usage; `used` has the usage of each feature of `shown`, in
 * the same order.
 */
type CachedCustomerUsage = {
  readonly shown: { readonly features: readonly object[] };
  readonly used: readonly UsageAgainstLimit[];
};

function withUsed(
  { features, ...shown }: CachedCustomerUsage['shown'],
  current: { used: readonly object[]; as_of: unknown },
) {
  const { used, as_of } = current;
  return { ...shown, features: features.map((feature, index) => ({ ...feature, ...used[index]! })), as_of };
}

function toCachedUsageRead(
  { shown, used }: CachedCustomerUsage,
  as_of: string,
): CachedAnswerRead<CachedCustomerUsage['shown']> {
  const moment: Record<string, unknown> = { as_of };
  for (let index = 0; index < used.length; index++)
    for (const [name, value] of Object.entries(showUsed(used[index]!))) moment[`${index}.${name}`] = value;
  return { of: [shown], show: usageAtMoment, moment };
}

function usageAtMoment(shown: CachedCustomerUsage['shown'], { as_of, ...currentValues }: AnswerMoment): object {
  const used: Record<string, unknown>[] = shown.features.map(() => ({}));
  for (const [place, value] of Object.entries(currentValues)) {
    const [index, name] = place.split('.');
    used[Number(index)]![name!] = value;
  }
  return withUsed(shown, { used, as_of });
}

function showUnchanged(known: object): object {
  return known;
}

function entitledKey(customer_id: string, query: CustomerEntitlementsQuery): string {
  return `entitled ${customer_id} ${JSON.stringify(query)}`;
}

function usageKey(query: CustomerUsageQuery): string {
  return `customer usage ${JSON.stringify(query)}`;
}

/** Context that reads from the given database as of the given time. */
function gatheredIn(context: Context, { database, now }: GatherContext): Context {
  return { ...context, services: { ...context.services, postgres: database }, now };
}

async function makeUsage(query: CustomerUsageQuery, asking: Context, gathering: GatherContext) {
  const context = gatheredIn(asking, gathering);
  const reading = toReading(context);
  const customer = await chosenCustomer(query, reading);
  await checkUsageReferences(customer.id, query, reading);
  const called = await listFeatureIdsByLookupKey(query.feature_lookup_keys ?? [], reading);
  const subscriptions = await listGrantingSubscriptions(customer.id, query.subscription_ids, reading);
  const entitled = await listEntitledFeatures(subscriptions, [...(query.feature_ids ?? []), ...called], reading);
  const usages = await gatherLimitedUsage(asking.services, { entitled, reading });
  const { again, until_ms } = buildUsageRefresh(usages, context.now);
  const features = await showLimitedUsage(usages, context);
  const shown = { customer_id: customer.id, features, period: commonPeriod(subscriptions), pagination: null };
  const toCachedUsage = (used: readonly UsageAgainstLimit[]): CachedCustomerUsage => ({ shown, used });
  const used_now = usages.map(({ used, usage_percent }) => ({ used, usage_percent }));
  return {
    answer: toCachedUsage(used_now),
    ...(again ? { again: (read: ReadCached) => toCachedUsage(again(read)) } : {}),
    until_ms,
  };
}

function toReading({ scope, services, now }: Context): EntitlementReadContext {
  return { scope, database: services.postgres, now };
}

/** Finds the customer by id, by external id, or by both if they agree. */
async function chosenCustomer(
  query: CustomerUsageQuery,
  { scope, database }: EntitlementReadContext,
): Promise<CustomerModel> {
  const { customer_id, customer_lookup_key } = query;
  if (!customer_id && !customer_lookup_key)
    throw invalid('customer_id', 'is required as a query parameter, or customer_lookup_key instead of it');
  if (!customer_id) return CustomerModel.fetchExternal(scope, customer_lookup_key!, database);
  const customer = await CustomerModel.fetch(scope, customer_id, { database });
  if (customer_lookup_key && customer.external_id !== customer_lookup_key)
    throw invalid('customer_lookup_key', `is not the external id of customer ${customer_id}`);
  return customer;
}

function commonPeriod(subscriptions: readonly SubscriptionModel[]) {
  const periods = subscriptions.map(({ current_period_start, current_period_end, billing_period }) => ({
    start_time: current_period_start,
    end_time: current_period_end,
    period: billing_period,
  }));
  const [first] = periods;
  const isOne = periods.every(
    ({ start_time, end_time }) => start_time === first!.start_time && end_time === first!.end_time,
  );
  return first && isOne ? first : null;
}
