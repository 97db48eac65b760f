/** Credit grants: create, find, change, archive. */
import { archiveCreditGrant, changeCreditGrant } from '../../../actions/credits/grants/change-credit-grant.ts';
import { createCreditGrant } from '../../../actions/credits/grants/create-credit-grant.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { CreditGrantModel } from '../../../storage/models/catalog/credit-grant.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { buildUpcomingGrantsQuery } from '../../../storage/queue/due-grants.ts';
import {
  CreateCreditGrant,
  CreditGrantAnswer,
  CreditGrantApplicationListAnswer,
  CreditGrantFilter,
  CreditGrantListAnswer,
  creditGrantGrammar,
  DeleteCreditGrant,
  UpdateCreditGrant,
} from '../../catalog/credit-grants/schema.ts';
import { fetchPage, listShape } from '../../http/list.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';

const tag = 'Credit grants';

const grants = standardRoutes({
  noun: 'creditgrant',
  called: { path: '/creditgrants', name: 'CreditGrant', words: 'credit grant' },
  tag,
  answer: CreditGrantAnswer,
  model: CreditGrantModel,
  show: (grant) => grant,
  list: { filter: CreditGrantFilter, answer: CreditGrantListAnswer, find: findCreditGrants },
});

export const creditGrantRoutes: Route[] = [
  grants.create({
    summary: 'Create a credit grant',
    description:
      'Creates a grant of a plan, an add-on or a subscription. A grant of a plan or add-on is a template without dates, given to each subscription that begins with it from then on. A grant of a subscription lies within its time and is given at once if it is due. All grants of one plan, or of one add-on, must have the same rates.',
    body: CreateCreditGrant,
    handle: ({ body }, context) =>
      createCreditGrant(context.services, context.scope, { input: body, author: toAuthor(context) }),
  }),
  grants.list,
  grants.read({
    summary: 'Get a credit grant',
    description: 'Returns the credit grant. An archived grant is returned too.',
  }),
  grants.change({
    summary: 'Update a credit grant',
    description:
      'Changes the name, the metadata, or the end of a grant of a subscription. The credits that it gives cannot be changed.',
    body: UpdateCreditGrant,
    handle: ({ params, body: { end_date, ...changes } }, context) =>
      changeCreditGrant(context.services, context.scope, {
        id: params.id,
        changes: end_date === undefined ? changes : { ...changes, end_date },
        author: toAuthor(context),
      }),
  }),
  route({
    method: 'delete',
    path: '/creditgrants/:id',
    operation_id: 'deleteCreditGrant',
    summary: 'Archive a credit grant',
    description:
      'Ends the grant now or at `effective_date`. Credits that were already given remain. A grant of a subscription with a later date stays published until then. Refused if the grant is already archived.',
    tag,
    access: 'creditgrant:write',
    params: idParams,
    body: DeleteCreditGrant,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ params, body }, context) => {
      const effective_date = body?.effective_date ?? null;
      const request = { id: params.id, effective_date, author: toAuthor(context) };
      const grant = await archiveCreditGrant(context.services, context.scope, request);
      return {
        message: grant.status === 'archived' ? 'credit grant archived' : `credit grant ends at ${grant.end_date}`,
      };
    },
  }),
  buildGrantsRoute({
    path: '/plans/:id/creditgrants',
    operation_id: 'getPlanCreditGrants',
    summary: 'List credit grants of a plan',
    giver: PlanModel,
    filter: 'plan_ids',
  }),
  buildGrantsRoute({
    path: '/addons/:id/creditgrants',
    operation_id: 'getAddonCreditGrants',
    summary: 'List credit grants of an add-on',
    giver: AddonModel,
    filter: 'addon_ids',
  }),
  buildUpcomingGrantsRoute({
    path: '/subscriptions/:id/grants/upcoming',
    operation_id: 'getSubscriptionUpcomingGrants',
    summary: 'List upcoming grants of a subscription',
    owner: SubscriptionModel,
    key: 'subscription_id',
  }),
  buildUpcomingGrantsRoute({
    path: '/customers/:id/grants/upcoming',
    operation_id: 'getCustomerUpcomingGrants',
    summary: 'List upcoming grants of a customer',
    owner: CustomerModel,
    key: 'customer_id',
  }),
];

type UpcomingGrantsRouteOptions = {
  path: string;
  operation_id: string;
  summary: string;
  owner: { fetch(scope: Scope, id: string, options: { database: Database }): Promise<unknown> };
  key: 'subscription_id' | 'customer_id';
};

/** Each grant has at most one upcoming application. The next one is created when the upcoming one is applied. */
function buildUpcomingGrantsRoute({ path, operation_id, summary, owner, key }: UpcomingGrantsRouteOptions): Route {
  return route({
    method: 'get',
    path,
    operation_id,
    summary,
    description:
      'Returns the next application of each grant, pending or failed and to be retried, the earliest first; at most 1,000.',
    tag,
    access: 'creditgrant:read',
    params: idParams,
    success: 200,
    answer: CreditGrantApplicationListAnswer,
    handle: async ({ params: { id } }, { scope, services: { postgres } }) => {
      await owner.fetch(scope, id, { database: postgres });
      const of = key === 'subscription_id' ? { subscription_id: id } : { customer_id: id };
      const items = await buildUpcomingGrantsQuery(scope, of, postgres).limit(UPCOMING_MAX);
      return { items, pagination: { total: items.length, limit: UPCOMING_MAX, offset: 0, next_cursor: null } };
    },
  });
}

/** Maximum length of a page. */
const UPCOMING_MAX = 1000;

type GrantsRouteOptions = {
  path: string;
  operation_id: string;
  summary: string;
  giver: { fetch(scope: Scope, id: string, options: { database: Database }): Promise<unknown> };
  filter: 'plan_ids' | 'addon_ids';
};

function buildGrantsRoute({ path, operation_id, summary, giver, filter }: GrantsRouteOptions): Route {
  return route({
    method: 'get',
    path,
    operation_id,
    summary,
    description: 'Returns the published credit grants in pages, newest first.',
    tag,
    access: 'creditgrant:read',
    params: idParams,
    query: listShape({}).pick({ limit: true, offset: true, cursor: true }),
    success: 200,
    answer: CreditGrantListAnswer,
    handle: async ({ params: { id }, query }, context) => {
      await giver.fetch(context.scope, id, { database: context.services.postgres });
      return findCreditGrants(CreditGrantFilter.parse({ ...query, [filter]: [id] }), context);
    },
  });
}

async function findCreditGrants(input: CreditGrantFilter, context: Context) {
  const query = narrow(CreditGrantModel.in(context.scope, context.services.postgres), [
    ['id', input.credit_grant_ids],
    ['plan_id', input.plan_ids],
    ['subscription_id', input.subscription_ids],
    ['addon_id', input.addon_ids],
    ['scope', input.scope],
  ]);
  return fetchPage(query, input, creditGrantGrammar);
}
