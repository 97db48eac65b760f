/** Entitlements: grant features to plans, add-ons and subscriptions. */
import { z } from 'zod';
import { archiveEntitlement } from '../../actions/entitlements/archive-entitlements.ts';
import { changeEntitlement } from '../../actions/entitlements/change-entitlement.ts';
import { checkUsageReferences } from '../../actions/entitlements/check-named.ts';
import { createEntitlement, createEntitlements } from '../../actions/entitlements/create-entitlement.ts';
import { listEntitledFeatures, listGrantingSubscriptions } from '../../actions/entitlements/entitled-features.ts';
import { AddonModel } from '../../storage/models/addon.ts';
import { EntitlementModel } from '../../storage/models/entitlement.ts';
import { loadPage, narrow } from '../../storage/models/page.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { fetchPage, listShape, matchAny } from '../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../http/route.ts';
import { standardRoutes } from '../http/standard-routes.ts';
import { SubscriptionEntitlementsAnswer, showEntitled } from './entitled.ts';
import { showEntitlement, showEntitlements } from './expand.ts';
import {
  BulkEntitlementAnswer,
  CreateBulkEntitlement,
  CreateEntitlement,
  EntitlementAnswer,
  EntitlementFilter,
  EntitlementListAnswer,
  entitlementGrammar,
  PlanEntitlementsAnswer,
  toEntitlementChanges,
  toEntitlementInput,
  UpdateEntitlement,
} from './schema.ts';

const tag = 'Entitlements';

/** The published client asks for no page, and means all: a plan grants a feature once, and features are not so many. */
const { limit, offset } = listShape({}).shape;
const GrantsPage = z.object({
  limit: limit.unwrap().default(1000).meta({ description: 'How many a page has at most, from 1 to 1000.' }),
  offset,
});

const entitlements = standardRoutes({
  noun: 'entitlement',
  tag,
  answer: EntitlementAnswer,
  model: EntitlementModel,
  show: showEntitlement,
  list: { filter: EntitlementFilter, answer: EntitlementListAnswer, find: findEntitlements },
});

export const entitlementRoutes: Route[] = [
  entitlements.create({
    summary: 'Grant a feature to a plan, an add-on or a subscription',
    description:
      'What is granted goes by the type of the feature: a limit of usage, a value, values by key, or just that it is there. What is granted bit by bit has the terms of its grants in place of a limit. One of a subscription adds to what its plan grants, or replaces the entitlement that `parent_entitlement_id` names.',
    body: CreateEntitlement,
    handle: ({ body }, context) =>
      createEntitlement(context.services, context.scope, {
        request: toEntitlementInput(body),
        author: toAuthor(context),
      }),
  }),
  route({
    method: 'post',
    path: '/entitlements/bulk',
    operation_id: 'createEntitlementsBulk',
    summary: 'Create up to 100 entitlements, all or none',
    description: 'One fault refuses all, and names the index of the entitlement.',
    tag,
    access: 'entitlement:write',
    body: CreateBulkEntitlement,
    success: 201,
    answer: BulkEntitlementAnswer,
    idempotency: {
      replay: async (done, _input, context) => {
        const { scope, services } = context;
        const ids = done.madeAll('entitlement');
        const records = await EntitlementModel.byId(scope, ids, services.postgres);
        return {
          items: await showEntitlements(
            ids.flatMap((id) => records.get(id) ?? []),
            [],
            context,
          ),
        };
      },
    },
    handle: async ({ body }, context) => {
      const input = { requests: body.items.map(toEntitlementInput), author: toAuthor(context) };
      return {
        items: await showEntitlements(await createEntitlements(context.services, context.scope, input), [], context),
      };
    },
  }),
  entitlements.list,
  entitlements.search,
  entitlements.read({
    summary: 'Get an entitlement with its feature',
    description: 'With its plan or add-on, too. An archived entitlement is answered, too.',
  }),
  entitlements.change({
    summary: 'Change what an entitlement grants',
    description:
      'Changes what is sent; the rest stays, and null clears: without a limit usage is unlimited. `clear_grant_config` takes all that is said of grants away.',
    body: UpdateEntitlement,
    handle: ({ params, body }, context) =>
      changeEntitlement(context.services, context.scope, {
        id: params.id,
        changes: toEntitlementChanges(body),
        author: toAuthor(context),
      }),
  }),
  entitlements.archive({
    summary: 'Archive an entitlement',
    description: 'It grants nothing from then on. One of a subscription that replaced it stays in force.',
    handle: ({ params }, context) =>
      archiveEntitlement(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
  route({
    method: 'get',
    path: '/plans/:id/entitlements',
    operation_id: 'getPlanEntitlements',
    summary: 'List what a plan grants',
    description: 'With the features. The fields of the plan stand beside the list.',
    tag,
    access: 'entitlement:read',
    params: idParams,
    query: GrantsPage,
    success: 200,
    answer: PlanEntitlementsAnswer,
    handle: async ({ params, query }, context) => {
      const plan = await PlanModel.fetch(context.scope, params.id, { database: context.services.postgres });
      return { ...plan, ...(await listEntityGrants(plan.id, query, context)) };
    },
  }),
  route({
    method: 'get',
    path: '/addons/:id/entitlements',
    operation_id: 'getAddonEntitlements',
    summary: 'List what an add-on grants',
    description: 'All that it grants once, with the features. Times its quantity where it is attached.',
    tag,
    access: 'entitlement:read',
    params: idParams,
    query: GrantsPage,
    success: 200,
    answer: EntitlementListAnswer,
    handle: async ({ params, query }, context) => {
      const addon = await AddonModel.fetch(context.scope, params.id, { database: context.services.postgres });
      return listEntityGrants(addon.id, query, context);
    },
  }),
  route({
    method: 'get',
    path: '/subscriptions/:id/entitlements',
    operation_id: 'getSubscriptionEntitlements',
    summary: 'Get what a subscription is entitled to',
    description:
      'What its plan, its add-ons times quantity, and its own entitlements grant, all together and source by source. Nothing where it is not active or trialing.',
    tag,
    access: 'entitlement:read',
    params: idParams,
    query: z.object({ feature_ids: matchAny('features') }),
    success: 200,
    answer: SubscriptionEntitlementsAnswer,
    handle: async ({ params, query }, context) => {
      const { scope, services, now } = context;
      const reading = { scope, database: services.postgres, now };
      const { id, plan_id, customer_id } = await SubscriptionModel.fetch(scope, params.id, reading);
      await checkUsageReferences(customer_id, query, reading);
      const granting = await listGrantingSubscriptions(customer_id, [id], reading);
      const entitled = await listEntitledFeatures(granting, query.feature_ids, reading);
      return { subscription_id: id, plan_id, features: await showEntitled(entitled, context) };
    },
  }),
];

async function findEntitlements(input: EntitlementFilter, context: Context) {
  const query = narrow(EntitlementModel.in(context.scope, context.services.postgres), [
    ['entity_type', input.entity_type],
    ['entity_id', input.entity_ids],
    ['feature_id', input.feature_ids],
    ['feature_type', input.feature_type],
    ['is_enabled', input.is_enabled],
    ['entity_id', input.plan_ids],
    ['entity_type', input.plan_ids?.length ? 'PLAN' : undefined],
  ]);
  if (input.has_grant_config === true) void query.whereNotNull('grant_quota');
  if (input.has_grant_config === false) void query.whereNull('grant_quota');
  const page = await fetchPage(query, input, entitlementGrammar);
  return { ...page, items: await showEntitlements(page.items, input.expand ?? [], context) };
}

async function listEntityGrants(entity_id: string, page: z.output<typeof GrantsPage>, context: Context) {
  const grants = EntitlementModel.buildPublishedQuery(context.scope, [entity_id], context.services.postgres);
  const { items, pagination } = await loadPage(grants, { ...page, order: [] });
  return { items: await showEntitlements(items, ['features'], context), pagination };
}
