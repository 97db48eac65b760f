/** Plans: create, find, change, copy, take prices over to subscriptions, archive. */

import { archivePlan } from '../../actions/catalogue/archive-plan.ts';
import { clonePlan } from '../../actions/catalogue/clone-plan.ts';
import { createPlan, formatPlanKeyConflict } from '../../actions/catalogue/create-plan.ts';
import { enqueuePlanSync } from '../../actions/catalogue/sync-plan.ts';
import { narrow } from '../../storage/models/page.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor, toChangeOptions } from '../http/route.ts';
import { standardRoutes } from '../http/standard-routes.ts';
import { replayWorkflow } from '../workflows/replay-workflow.ts';
import { WorkflowResult } from '../workflows/schema.ts';
import { showPlan, showPlans } from './expand.ts';
import { ClonePlan, CreatePlan, PlanAnswer, PlanFilter, PlanListAnswer, planGrammar, UpdatePlan } from './schema.ts';

const tag = 'Plans';
const TAKEN_OVER = 'the prices are being taken over';

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
      'A plan is what prices are attached to (`POST /prices`); it has none at first. Its `lookup_key` is its own among the published plans; without one it is made from the name.',
    body: CreatePlan,
    handle: ({ body }, context) =>
      createPlan(context.services, context.scope, { fields: body, author: toAuthor(context) }),
  }),
  plans.list,
  plans.search,
  plans.read({
    summary: 'Get a plan with its prices and entitlements',
    description:
      'Its published prices with their meters are in `prices`, what it grants in `entitlements`. An archived plan is answered, too; these are archived with it.',
  }),
  plans.change({
    summary: 'Update a plan',
    description: 'Changes what is sent; the rest stays. Subscriptions and prices are not touched.',
    body: UpdatePlan,
    handle: ({ params, body }, context) => {
      const by = { ...toChangeOptions(context), conflict: formatPlanKeyConflict(body.lookup_key) };
      return PlanModel.changePublished(context.scope, { id: params.id, changes: body }, by);
    },
  }),
  plans.archive({
    summary: 'Archive a plan without active subscriptions',
    description:
      'Its prices are archived with it, and their lookup keys are free for others. Refused while a subscription to it is not cancelled.',
    handle: ({ params }, context) =>
      archivePlan(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
  route({
    method: 'post',
    path: '/plans/:id/clone',
    operation_id: 'clonePlan',
    summary: 'Copy a plan with its prices, entitlements and credit grants',
    description:
      'The copy has the prices that have not ended, as new prices without lookup keys, and the same entitlements and credit grants. The request states its name and lookup key, and may state description, order and metadata of its own.',
    tag,
    access: 'plan:write',
    params: idParams,
    body: ClonePlan,
    success: 201,
    answer: PlanAnswer,
    idempotency: plans.once,
    handle: async ({ params, body }, context) => {
      const clone = { id: params.id, fields: body, author: toAuthor(context) };
      return showPlan(await clonePlan(context.services, context.scope, clone), context);
    },
  }),
  ...(
    [
      ['/plans/:id/sync/subscriptions', 'syncPlanPrices', 'Take new and ended prices over to the subscriptions'],
      ['/plans/:id/sync/subscriptions/v2', 'syncPlanPricesV2', 'Another path of the same'],
    ] as const
  ).map(([path, operation_id, summary]) =>
    route({
      method: 'post',
      path,
      operation_id,
      summary,
      description:
        'Subscriptions to the plan that live get lines of its new prices, and lines of prices that have ended end; what they override stays. ' +
        'Nothing changes in a time that is paid or invoiced. It is done in the background: ask after it by `workflow_id`. ' +
        'Refused with 409 while one of the plan is running.',
      tag,
      access: 'plan:write',
      params: idParams,
      success: 200,
      answer: WorkflowResult,
      idempotency: replayWorkflow(() => TAKEN_OVER),
      handle: async ({ params }, context) => {
        const run = await enqueuePlanSync(context.services, context.scope, {
          plan_id: params.id,
          author: toAuthor(context),
        });
        return { message: TAKEN_OVER, workflow_id: run.id, run_id: run.run_id };
      },
    }),
  ),
];

async function findPlans(input: PlanFilter, context: Context) {
  const query = narrow(PlanModel.in(context.scope, context.services.postgres), [
    ['id', input.plan_ids],
    ['lookup_key', input.lookup_key],
  ]);
  const page = await fetchPage(query, input, planGrammar);
  return { ...page, items: await showPlans(page.items, input.expand ?? [], context) };
}
