/** Plan changes: preview and execution. Both versions of the requests change the subscription in place. */
import {
  type ChangedPlan,
  executePlanChange,
  previewPlanChange,
} from '../../../actions/lifecycle/subscriptions/change-plan.ts';
import { runWithAnswer } from '../../../storage/models/foundation/request-effects.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { type Context, type DecodedInput, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { showSubscription } from '../../subscriptions/expand.ts';
import {
  ChangePlan,
  ChangePlanAnswer,
  ChangePlanPreviewAnswer,
  ChangePlanV2,
  ChangePlanV2Answer,
} from './plan-change-schema.ts';
import { showChangedPlan, showChangedPlanV2, showPreview, showPreviewV2 } from './show-plan-change.ts';

const common = { method: 'post', tag: 'Subscriptions', params: idParams, success: 200 } as const;
const WHAT_HAPPENS =
  'Changes the plan in place: lines of the old plan end, lines of the new plan begin, and one invoice holds the ' +
  'credits and charges. Another billing period starts a new period. A change at the end of the period becomes a ' +
  'schedule, which can be cancelled.';
/**
 * Example body of version 2. The documentation runs the examples of both versions on one subscription; this one changes back to the plan
 * that the first example has left.
 */
const BACK = { target_plan_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X', proration_behavior: 'create_prorations' };
const WHAT_WOULD =
  'Returns the credits and charges of the change and their date. Nothing is written. A request that the execution ' +
  'would refuse is refused.';

export const planChangeRoutes: Route[] = [
  route({
    ...common,
    path: '/subscriptions/:id/change/preview',
    operation_id: 'previewSubscriptionChange',
    summary: 'Preview a change of plan',
    description: WHAT_WOULD,
    access: 'subscription:read',
    body: ChangePlan,
    answer: ChangePlanPreviewAnswer,
    handle: async ({ params, body }, context) =>
      showPreview(
        await previewPlanChange(context.services, context.scope, toPlanChangeInput(params, body, context)),
        body,
      ),
  }),
  route({
    ...common,
    path: '/subscriptions/:id/change/execute',
    operation_id: 'executeSubscriptionChange',
    summary: 'Change the plan of a subscription',
    description: WHAT_HAPPENS,
    access: 'subscription:write',
    body: ChangePlan,
    answer: ChangePlanAnswer,
    idempotency: { replay: async ({ answer }) => answer },
    handle: async ({ params, body }, context) => {
      const answer = (changed: ChangedPlan) => showChangedPlan(changed, body);
      const change = toPlanChangeInput(params, body, context);
      return answer(await runWithAnswer(answer, () => executePlanChange(context.services, context.scope, change)));
    },
  }),
  route({
    ...common,
    path: '/subscriptions/:id/change/v2/preview',
    operation_id: 'previewSubscriptionChangeV2',
    summary: 'Preview a plan change (v2)',
    description: WHAT_WOULD,
    access: 'subscription:read',
    body: ChangePlanV2,
    answer: ChangePlanV2Answer,
    handle: async ({ params, body }, context) => {
      const previewed = await previewPlanChange(
        context.services,
        context.scope,
        toPlanChangeInputV2(params, body, context),
      );
      return showPreviewV2(previewed, body, context);
    },
  }),
  route({
    ...common,
    path: '/subscriptions/:id/change/v2/execute',
    operation_id: 'executeSubscriptionChangeV2',
    summary: "Change a subscription's plan (v2)",
    description: WHAT_HAPPENS,
    access: 'subscription:write',
    body: ChangePlanV2,
    answer: ChangePlanV2Answer,
    example: { body: BACK },
    idempotency: {
      replay: async ({ answer }, { params }, context) => {
        const { scope, services } = context;
        const subscription = await SubscriptionModel.fetch(scope, params.id, { database: services.postgres });
        return { ...answer, subscription: await showSubscription(subscription, context) };
      },
    },
    handle: async ({ params, body }, context) => {
      const change = toPlanChangeInputV2(params, body, context);
      const changed = await runWithAnswer(
        (made: ChangedPlan) => showChangedPlanV2(made, body),
        () => executePlanChange(context.services, context.scope, change),
      );
      const subscription = await showSubscription(changed.subscription, context);
      return { ...showChangedPlanV2(changed, body), subscription };
    },
  }),
];

type SubscriptionIdParams = DecodedInput<typeof idParams>;

function toPlanChangeInput({ id }: SubscriptionIdParams, body: DecodedInput<typeof ChangePlan>, context: Context) {
  const { target_plan_id, proration_behavior, change_at, metadata } = body;
  const { billing_period, billing_period_count, billing_cycle } = body;
  const terms = { billing_period, billing_period_count, billing_cycle };
  return { id, request: { target_plan_id, proration_behavior, terms }, change_at, metadata, author: toAuthor(context) };
}

function toPlanChangeInputV2({ id }: SubscriptionIdParams, body: DecodedInput<typeof ChangePlanV2>, context: Context) {
  const { target_plan_id, proration_behavior, change_at, metadata, entity_policies } = body;
  const request = { target_plan_id, proration_behavior, terms: {}, addons: entity_policies?.addons ?? null };
  return { id, request, change_at, metadata, author: toAuthor(context) };
}
