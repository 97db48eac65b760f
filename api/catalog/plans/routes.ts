/** Plans: create, find, change, copy, sync prices to subscriptions, archive. */

import { archivePlan } from '../../../actions/catalog/plans/archive-plan.ts';
import { clonePlan } from '../../../actions/catalog/plans/clone-plan.ts';
import { createPlan, formatPlanKeyConflict } from '../../../actions/catalog/plans/create-plan.ts';
import { enqueuePlanSync } from '../../../actions/lifecycle/subscriptions/sync-plan.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { replayWorkflow } from '../../foundation/workflows/replay-workflow.ts';
import { WorkflowResult } from '../../foundation/workflows/schema.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor, toChangeOptions } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
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
      'Creates a plan, which groups prices; they are attached with `POST /prices`. Its `lookup_key` is unique ' +
      'among published plans. Default: derived from the name.',
    body: CreatePlan,
    handle: ({ body }, context) =>
      createPlan(context.services, context.scope, { fields: body, author: toAuthor(context) }),
  }),
  plans.list,
  plans.search,
  plans.read({
    summary: 'Get a plan with its prices',
    description:
      'Returns the plan with its published prices and their meters in `prices`, and its grants in `entitlements`. ' +
      'An archived plan is returned, too; its prices and entitlements are archived with it.',
  }),
  plans.change({
    summary: 'Update a plan',
    description: 'Changes the sent fields only. Subscriptions and prices are unaffected.',
    body: UpdatePlan,
    handle: ({ params, body }, context) => {
      const by = { ...toChangeOptions(context), conflict: formatPlanKeyConflict(body.lookup_key) };
      return PlanModel.changePublished(context.scope, { id: params.id, changes: body }, by);
    },
  }),
  plans.archive({
    summary: 'Archive a plan',
    description:
      'Archives the plan and its prices, whose lookup keys become free. Refused while a subscription to the plan ' +
      'is not cancelled.',
    handle: ({ params }, context) =>
      archivePlan(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
  route({
    method: 'post',
    path: '/plans/:id/clone',
    operation_id: 'clonePlan',
    summary: 'Copy a plan',
    description:
      'Creates a plan with copies of the prices that have not ended, without their lookup keys, and of the ' +
      'entitlements and credit grants. The request sets the name and lookup key of the copy, and optionally its ' +
      'description, order and metadata.',
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
      ['/plans/:id/sync/subscriptions', 'syncPlanPrices', 'Sync plan prices to subscriptions'],
      ['/plans/:id/sync/subscriptions/v2', 'syncPlanPricesV2', 'Sync plan prices to subscriptions (v2)'],
    ] as const
  ).map(([path, operation_id, summary]) =>
    route({
      method: 'post',
      path,
      operation_id,
      summary,
      description:
        'Updates active subscriptions to the plan: each gets lines for new prices, and lines of ended prices end. ' +
        'Overridden prices remain. Periods that are paid or invoiced do not change. The work runs in the ' +
        'background; poll it by `workflow_id`. Refused with 409 while another sync of the plan is running.',
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
