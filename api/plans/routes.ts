/** Plans: create, find, change, copy, archive. */
import { archivePlan } from '../../actions/catalogue/archive-plan.ts';
import { clonePlan } from '../../actions/catalogue/clone-plan.ts';
import { createdBy } from '../../core/stamp.ts';
import { narrow } from '../../storage/models/page.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { newId } from '../../storage/new-id.ts';
import { fetchPage } from '../http/list.ts';
import { authorOf, type Context, idParams, type Route, route } from '../http/route.ts';
import { standardRoutes } from '../http/standard-routes.ts';
import { showPlan, showPlans } from './expand.ts';
import { ClonePlan, CreatePlan, PlanAnswer, PlanFilter, PlanListAnswer, planGrammar, UpdatePlan } from './schema.ts';

const tag = 'Plans';

const plans = standardRoutes({
  noun: 'plan',
  tag,
  answer: PlanAnswer,
  model: PlanModel,
  show: showPlan,
  list: { filter: PlanFilter, answer: PlanListAnswer, find: findPlans },
});

export const planRoutes: Route[] = [
  plans.create({
    summary: 'Create a plan',
    description:
      'A plan is what prices are attached to (`POST /prices`); it has none at first. Its `lookup_key` is its own among the published plans.',
    body: CreatePlan,
    handle: ({ body }, context) => {
      const record = { id: newId('plan', context.now.getTime()), ...body, ...createdBy(authorOf(context)) };
      const conflict = keyConflict(body.lookup_key);
      return PlanModel.add(context.scope, record, { database: context.services.postgres, conflict });
    },
  }),
  plans.list,
  plans.search,
  plans.read({
    summary: 'Get a plan with its prices',
    description: 'Its published prices with their meters are in `prices`. An archived plan is answered, too.',
  }),
  plans.change({
    summary: 'Update a plan',
    description: 'Changes what is sent; the rest stays. Subscriptions and prices are not touched.',
    body: UpdatePlan,
    handle: ({ params, body }, context) => {
      const conflict = keyConflict(body.lookup_key);
      const by = { by: authorOf(context), database: context.services.postgres, conflict };
      return PlanModel.changePublished(context.scope, { id: params.id, changes: body }, by);
    },
  }),
  plans.archive({
    summary: 'Archive a plan without active subscriptions',
    description: 'Its lookup key is free for another plan then. Refused while a subscription to it is not cancelled.',
    handle: ({ params }, context) =>
      archivePlan(context.services, context.scope, { id: params.id, author: authorOf(context) }),
  }),
  route({
    method: 'post',
    path: '/plans/:id/clone',
    operation_id: 'clonePlan',
    summary: 'Copy a plan with its prices and credit grants',
    description:
      'The copy has the prices that have not ended, as new prices without lookup keys, and the credit grants. The request states its name and lookup key, and may state description, order and metadata of its own.',
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
