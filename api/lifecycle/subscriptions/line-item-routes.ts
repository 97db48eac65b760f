/** Lines of an existing subscription: add, change, end. */
import { addLineItem } from '../../../actions/lifecycle/subscriptions/add-line-item.ts';
import { changeLineItem } from '../../../actions/lifecycle/subscriptions/change-line-item.ts';
import { endLineItem } from '../../../actions/lifecycle/subscriptions/end-line-item.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { AddedLineItemAnswer, SubscriptionLineItemAnswer } from '../../subscriptions/answer.ts';
import { showLineItems } from '../../subscriptions/expand.ts';
import { showWarnings } from '../../subscriptions/warnings.ts';
import { AddLineItem, ChangeLineItem, EndLineItem } from './line-item-schema.ts';

const lineItemOperation = {
  tag: 'Subscriptions',
  access: 'subscription:write',
  params: idParams,
  answer: SubscriptionLineItemAnswer,
} as const;

export const lineItemRoutes: Route[] = [
  route({
    ...lineItemOperation,
    method: 'post',
    path: '/subscriptions/:id/lineitems',
    operation_id: 'createSubscriptionLineItem',
    summary: 'Add a line to a subscription',
    description:
      'Adds a line for an existing price, or for a price in the request. Advance charges for the current period ' +
      'are on a separate invoice, which is final at once. Later charges are on the invoices of their periods.',
    body: AddLineItem,
    answer: AddedLineItemAnswer,
    success: 201,
    idempotency: {
      replay: async (done, _input, context) => {
        const { scope, services } = context;
        const id = done.made('subscription_line_item');
        return showAdded(await SubscriptionLineItemModel.fetch(scope, id, { database: services.postgres }), context);
      },
    },
    handle: async ({ params, body }, context) => {
      const addition = { subscription_id: params.id, request: body, author: toAuthor(context) };
      return showAdded(await addLineItem(context.services, context.scope, addition), context);
    },
  }),
  route({
    ...lineItemOperation,
    method: 'put',
    path: '/subscriptions/lineitems/:id',
    operation_id: 'updateSubscriptionLineItem',
    summary: 'Change a line of a subscription',
    description:
      'Changes the metadata in place. A change of the charge ends the line and starts another one, which is ' +
      'returned. The new line has the requested quantity, the same periods, and a price that belongs to the ' +
      'subscription if the charge differs. The difference of advance charges is invoiced or credited at once.',
    body: ChangeLineItem,
    success: 200,
    handle: async ({ params, body }, context) => {
      const change = { id: params.id, request: body, author: toAuthor(context) };
      return show(await changeLineItem(context.services, context.scope, change), context);
    },
  }),
  route({
    ...lineItemOperation,
    method: 'delete',
    path: '/subscriptions/lineitems/:id',
    operation_id: 'deleteSubscriptionLineItem',
    summary: 'End a line of a subscription',
    description:
      'Ends the line. Unused advance charges are credited, and arrears are on the invoice of their period. ' +
      'One-time charges are not credited.',
    body: EndLineItem,
    success: 200,
    handle: async ({ params, body }, context) => {
      const ending = { id: params.id, ...body, author: toAuthor(context) };
      return show(await endLineItem(context.services, context.scope, ending), context);
    },
  }),
];

async function show(item: SubscriptionLineItemModel, context: Context) {
  const [shown] = await showLineItems([item], { prices: true, meters: false }, context);
  return shown!;
}

async function showAdded(item: SubscriptionLineItemModel, context: Context) {
  const { scope, services } = context;
  const subscription = await SubscriptionModel.fetch(scope, item.subscription_id, { database: services.postgres });
  return { ...(await show(item, context)), warnings: await showWarnings(subscription, [item], context) };
}
