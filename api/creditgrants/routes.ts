/** Credit grants: create, find, change, archive. */
import { archiveCreditGrant, changeCreditGrant } from '../../actions/grants/change-credit-grant.ts';
import { createCreditGrant } from '../../actions/grants/create-credit-grant.ts';
import type { Scope } from '../../core/scope.ts';
import { buildUpcomingGrantsQuery } from '../../storage/due-grants.ts';
import { AddonModel } from '../../storage/models/addon.ts';
import { CreditGrantModel } from '../../storage/models/credit-grant.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { narrow } from '../../storage/models/page.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database } from '../../storage/stores.ts';
import { fetchPage, listShape } from '../http/list.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../http/route.ts';
import { standardRoutes } from '../http/standard-routes.ts';
import {
  CreateCreditGrant,
  CreditGrantAnswer,
  CreditGrantApplicationListAnswer,
  CreditGrantFilter,
  CreditGrantListAnswer,
  creditGrantGrammar,
  DeleteCreditGrant,
  UpdateCreditGrant,
} from './schema.ts';

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
    summary: 'Create a credit grant of a plan, add-on or subscription',
    description:
      'A grant of a plan or add-on is a template without dates; one of a subscription lies inside of it. All grants of a plan have the same rates, and all of an add-on. One of a subscription is given at once where it is due; one of a plan or add-on to each subscription that begins with it from then on.',
    body: CreateCreditGrant,
    handle: ({ body }, context) =>
      createCreditGrant(context.services, context.scope, { input: body, author: toAuthor(context) }),
  }),
  grants.list,
  grants.read({ summary: 'Get a credit grant', description: 'An archived grant is answered, too.' }),
  grants.change({
    summary: 'Update the name, the metadata or the end of a credit grant',
    description: 'Changes what is sent; the rest stays. What it gives cannot be changed.',
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
    summary: 'Archive a credit grant, now or from a date on',
    description:
      'It gives no more credits from then on; what it gave stays. One of a subscription that ends ahead stays published until then. Refused when it is archived already.',
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
    summary: 'List the credit grants of a plan',
    giver: PlanModel,
    filter: 'plan_ids',
  }),
  buildGrantsRoute({
    path: '/addons/:id/creditgrants',
    operation_id: 'getAddonCreditGrants',
    summary: 'List the credit grants of an add-on',
    giver: AddonModel,
    filter: 'addon_ids',
  }),
  buildUpcomingGrantsRoute({
    path: '/subscriptions/:id/grants/upcoming',
    operation_id: 'getSubscriptionUpcomingGrants',
    summary: 'List the credit grants that a subscription is to get',
    owner: SubscriptionModel,
    key: 'subscription_id',
  }),
  buildUpcomingGrantsRoute({
    path: '/customers/:id/grants/upcoming',
    operation_id: 'getCustomerUpcomingGrants',
    summary: 'List the credit grants that the subscriptions of a customer are to get',
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

/** Of a grant the next: the one behind it is made when this one is given. */
function buildUpcomingGrantsRoute({ path, operation_id, summary, owner, key }: UpcomingGrantsRouteOptions): Route {
  return route({
    method: 'get',
    path,
    operation_id,
    summary,
    description:
      'Applications that are pending, or have failed and are tried again: the next of each grant, the soonest first.',
    tag,
    access: 'creditgrant:read',
    params: idParams,
    success: 200,
    answer: CreditGrantApplicationListAnswer,
    handle: async ({ params: { id } }, { scope, services: { postgres } }) => {
      await owner.fetch(scope, id, { database: postgres });
      const of = key === 'subscription_id' ? { subscription_id: id } : { customer_id: id };
      const items = await buildUpcomingGrantsQuery(scope, of, postgres).limit(UPCOMING_MAX);
      return { items, pagination: { total: items.length, limit: UPCOMING_MAX, offset: 0 } };
    },
  });
}

/** As long as a page can be. */
const UPCOMING_MAX = 1000;

type GrantsRouteOptions = {
  path: string;
  operation_id: string;
  summary: string;
  giver: { fetch(scope: Scope, id: string, options: { database: Database }): Promise<unknown> };
  filter: 'plan_ids' | 'addon_ids';
};

/** The grants of one plan or add-on, at a path of its own. */
function buildGrantsRoute({ path, operation_id, summary, giver, filter }: GrantsRouteOptions): Route {
  return route({
    method: 'get',
    path,
    operation_id,
    summary,
    description: 'Published ones, newest first, a page at a time.',
    tag,
    access: 'creditgrant:read',
    params: idParams,
    query: listShape({}).pick({ limit: true, offset: true }),
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
