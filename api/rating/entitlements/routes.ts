/** Entitlements: grant features to plans, add-ons and subscriptions. */
import { z } from 'zod';
import { archiveEntitlement } from '../../../actions/catalog/entitlements/archive-entitlements.ts';
import { changeEntitlement } from '../../../actions/catalog/entitlements/change-entitlement.ts';
import { createEntitlement, createEntitlements } from '../../../actions/catalog/entitlements/create-entitlement.ts';
import {
  listEntitledFeatures,
  listGrantingSubscriptions,
} from '../../../actions/rating/allowances/entitled-features.ts';
import { checkUsageReferences } from '../../../actions/rating/entitlements/check-named.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { loadPage, narrow } from '../../../storage/models/foundation/page.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { showEntitlement, showEntitlements } from '../../catalog/entitlements/expand.ts';
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
} from '../../catalog/entitlements/schema.ts';
import { buildWholeListPage, fetchPage, matchAny } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import { SubscriptionEntitlementsAnswer, showEntitled } from './entitled.ts';

const tag = 'Entitlements';

/** Enough for all, because a plan grants a feature once. */
const GrantsPage = buildWholeListPage('entitlements');

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
    summary: 'Create an entitlement',
    description:
      'Grants a feature to a plan, an add-on or a subscription. The type of the feature decides the value: a usage limit, a text, values by key, or none. Usage-ordered grants have terms instead of a limit. An entitlement of a subscription adds to those of its plan, or replaces the one in `parent_entitlement_id`.',
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
    summary: 'Create entitlements in bulk',
    description:
      'Creates 1 to 100 entitlements, all or none. One fault refuses all, and the error names the index of the entitlement.',
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
    summary: 'Get an entitlement',
    description:
      'Returns the entitlement with its feature and its plan or add-on. An archived entitlement is returned too.',
  }),
  entitlements.change({
    summary: 'Update an entitlement',
    description:
      'Changes the fields in the request. Null clears a field: without a limit usage is unlimited. `clear_grant_config` removes all terms of grants.',
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
    description:
      'Archives the entitlement, which then grants nothing. An entitlement of a subscription that replaces it stays in force.',
    handle: ({ params }, context) =>
      archiveEntitlement(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
  route({
    method: 'get',
    path: '/plans/:id/entitlements',
    operation_id: 'getPlanEntitlements',
    summary: 'List entitlements of a plan',
    description:
      'Returns the published entitlements of the plan with their features. The answer also has the fields of the plan.',
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
    summary: 'List entitlements of an add-on',
    description:
      'Returns the published entitlements of one unit of the add-on, with their features. An attached add-on grants them times its quantity.',
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
    summary: 'Get entitlements of a subscription',
    description:
      'Returns the features that the subscription grants, combined and by source: its plan, its add-ons times quantity, and its own entitlements. Empty unless the subscription is active or trialing.',
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

const GRANTS_ORDER = ['display_order', 'created_at', 'id'].map((field) => ({ field, direction: 'asc' as const }));

async function listEntityGrants(entity_id: string, page: z.output<typeof GrantsPage>, context: Context) {
  const grants = EntitlementModel.buildPublishedQuery(context.scope, [entity_id], context.services.postgres);
  const { items, pagination } = await loadPage(grants.clearOrder(), { ...page, order: GRANTS_ORDER });
  return { items: await showEntitlements(items, ['features'], context), pagination };
}
