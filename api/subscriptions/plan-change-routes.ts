/** Plan changes: what they would do, and doing them. Both versions of the requests do the same, in place. */
import { type ChangedPlan, executePlanChange, previewPlanChange } from '../../actions/subscriptions/change-plan.ts';
import { runWithAnswer } from '../../storage/models/request-effects.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { type Context, type DecodedInput, idParams, type Route, route, toAuthor } from '../http/route.ts';
import { showSubscription } from './expand.ts';
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
  'The subscription keeps its id: the lines of its plan end and those of the other begin, and what that credits and charges is one invoice. With another billing period a new period begins. At the end of the period it is a schedule, which can be undone.';
/** After the example of the first version was done. */
const BACK = { target_plan_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X', proration_behavior: 'create_prorations' };
const WHAT_WOULD =
  'What would be credited and charged, and when; nothing is written. What would be refused is refused.';

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
    summary: 'Preview a change of plan in the periods that the subscription has',
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
    summary: 'Change the plan of a subscription in the periods that it has',
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
