/** Plans: create, find, change, copy, archive. */
import { archivePlan } from '../../actions/catalogue/archive-plan.ts';
import { clonePlan } from '../../actions/catalogue/clone-plan.ts';
import { notFound } from '../../core/error.ts';
import { createdBy, updatedBy } from '../../core/stamp.ts';
import { named } from '../../storage/models/model.ts';
import { narrow } from '../../storage/models/page.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { newId } from '../../storage/new-id.ts';
import { fetchPage } from '../http/list.ts';
import { authorOf, type Context, idParams, MessageAnswer, type Route, route } from '../http/route.ts';
import { showPlan, showPlans } from './expand.ts';
import { ClonePlan, CreatePlan, PlanAnswer, PlanFilter, PlanListAnswer, planGrammar, UpdatePlan } from './schema.ts';

const tag = 'Plans';

export const planRoutes: Route[] = [
  route({
    method: 'post',
    path: '/plans',
    operation_id: 'createPlan',
    summary: 'Create a plan',
    tag,
    access: 'plan:write',
    body: CreatePlan,
    success: 201,
    answer: PlanAnswer,
    handle: async ({ body }, context) => {
      const record = { id: newId('plan', context.now.getTime()), ...body, ...createdBy(authorOf(context)) };
      const plan = await PlanModel.add(context.scope, record, {
        database: context.services.postgres,
        conflict: keyConflict(body.lookup_key),
      });
      return showPlan(plan, context);
    },
  }),
  route({
    method: 'get',
    path: '/plans',
    operation_id: 'listPlans',
    summary: 'List plans',
    tag,
    access: 'plan:read',
    query: PlanFilter,
    success: 200,
    answer: PlanListAnswer,
    handle: ({ query }, context) => findPlans(query, context),
  }),
  route({
    method: 'post',
    path: '/plans/search',
    operation_id: 'queryPlan',
    summary: 'Search plans',
    tag,
    access: 'plan:read',
    body: PlanFilter,
    success: 200,
    answer: PlanListAnswer,
    handle: ({ body }, context) => findPlans(body, context),
  }),
  route({
    method: 'get',
    path: '/plans/:id',
    operation_id: 'getPlan',
    summary: 'Get a plan with its prices',
    tag,
    access: 'plan:read',
    params: idParams,
    success: 200,
    answer: PlanAnswer,
    handle: async ({ params }, context) =>
      showPlan(await PlanModel.fetch(context.scope, params.id, { database: context.services.postgres }), context),
  }),
  route({
    method: 'put',
    path: '/plans/:id',
    operation_id: 'updatePlan',
    summary: 'Update a plan',
    tag,
    access: 'plan:write',
    params: idParams,
    body: UpdatePlan,
    success: 200,
    answer: PlanAnswer,
    handle: async ({ params, body }, context) => {
      const [plan] = await PlanModel.in(context.scope, context.services.postgres)
        .where({ id: params.id, status: 'published' })
        .patch({ ...body, ...updatedBy(authorOf(context)) })
        .returning('*')
        .catch((error: unknown) => {
          throw named(error, keyConflict(body.lookup_key));
        });
      if (!plan) throw notFound('plan', params.id);
      return showPlan(plan, context);
    },
  }),
  route({
    method: 'delete',
    path: '/plans/:id',
    operation_id: 'deletePlan',
    summary: 'Archive a plan without active subscriptions',
    tag,
    access: 'plan:write',
    params: idParams,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ params }, context) => {
      await archivePlan(context.services, context.scope, { id: params.id, author: authorOf(context) });
      return { message: 'plan deleted' };
    },
  }),
  route({
    method: 'post',
    path: '/plans/:id/clone',
    operation_id: 'clonePlan',
    summary: 'Copy a plan with its prices',
    tag,
    access: 'plan:write',
    params: idParams,
    body: ClonePlan,
    success: 201,
    answer: PlanAnswer,
    handle: async ({ params, body }, context) => {
      const clone = { id: params.id, fields: body, author: authorOf(context) };
      return showPlan(await clonePlan(context.services, context.scope, clone), context);
    },
  }),
];

const keyConflict = (lookup_key: string | null | undefined) => `a plan with lookup_key ${lookup_key} exists already`;

async function findPlans(input: PlanFilter, context: Context) {
  const query = narrow(PlanModel.in(context.scope, context.services.postgres), [
    ['id', input.plan_ids],
    ['lookup_key', input.lookup_key],
  ]);
  const page = await fetchPage(query, input, planGrammar);
  return { ...page, items: await showPlans(page.items, input.expand ?? [], context) };
}
