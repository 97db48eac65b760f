/** Modifications of a subscription: preview and execution. */
import {
  executeModification,
  type ModifiedSubscription,
  type ModifySubscriptionInput,
  previewModification,
} from '../../../actions/lifecycle/subscriptions/modify-subscription.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { runWithAnswer } from '../../../storage/models/foundation/request-effects.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { showSubscription } from '../../subscriptions/expand.ts';
import { ModifySubscription, ModifySubscriptionAnswer } from './modify-schema.ts';

/** Example of a lower quantity, whose credit exceeds the charge. The documentation runs it after the example of the preview. */
const FEWER = {
  type: 'quantity_change',
  quantity_change_params: { line_items: [{ id: 'subs_line_01JZ8K3M5N7P9Q1R3S5T7V9W3X', quantity: '2' }] },
};

const modifies = {
  method: 'post',
  tag: 'Subscriptions',
  params: idParams,
  body: ModifySubscription,
  success: 200,
  answer: ModifySubscriptionAnswer,
} as const;

export const modifyRoutes: Route[] = [
  route({
    ...modifies,
    path: '/subscriptions/:id/modify/preview',
    operation_id: 'previewSubscriptionModification',
    summary: 'Preview a modification of a subscription',
    description:
      'Returns the lines that would end and begin, and the resulting invoice with its credits and charges. ' +
      'Nothing is written. A request that the execution would refuse is refused.',
    access: 'subscription:read',
    handle: ({ params, body }, context) => shown(previewModification, { id: params.id, request: body }, context),
  }),
  route({
    ...modifies,
    path: '/subscriptions/:id/modify/execute',
    operation_id: 'executeSubscriptionModification',
    summary: 'Modify a subscription',
    description:
      'Credits unused advance charges and charges their replacement, on one invoice that is final at once. A ' +
      'negative total lowers open invoices; its paid part goes to the prepaid wallet of the invoiced customer.',
    access: 'subscription:write',
    example: { body: FEWER },
    idempotency: {
      replay: async ({ answer }, { params }, context) => {
        const { scope, services } = context;
        const subscription = await SubscriptionModel.fetch(scope, params.id, { database: services.postgres });
        return { ...answer, subscription: await showSubscription(subscription, context) };
      },
    },
    handle: ({ params, body }, context) =>
      runWithAnswer(
        ({ changed_resources }: ModifiedSubscription) => ({ changed_resources }),
        () => shown(executeModification, { id: params.id, request: body }, context),
      ),
  }),
];

async function shown(
  verb: (stores: Stores, scope: Scope, question: ModifySubscriptionInput) => Promise<ModifiedSubscription>,
  question: Omit<ModifySubscriptionInput, 'author'>,
  context: Context,
) {
  const modified = await verb(context.services, context.scope, { ...question, author: toAuthor(context) });
  const { subscription, changed_resources } = modified;
  return { subscription: await showSubscription(subscription, context), changed_resources };
}
