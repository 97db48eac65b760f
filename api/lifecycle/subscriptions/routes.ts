/** Subscriptions: customers, their prices and billing periods. */

import { loadSubscriptionUsage } from '../../../actions/invoicing/billing/subscription-usage.ts';
import { resumeSubscriptionCheckout, subscribeOnce } from '../../../actions/lifecycle/checkout/subscribe-once.ts';
import { resumeOpening, resumeSubscriptionCreation } from '../../../actions/lifecycle/payments/collect-opening.ts';
import { activateSubscription } from '../../../actions/lifecycle/subscriptions/activate-subscription.ts';
import {
  type CancelledSubscription,
  cancelSubscription,
} from '../../../actions/lifecycle/subscriptions/cancel-subscription.ts';
import { updateSubscription } from '../../../actions/lifecycle/subscriptions/update-subscription.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { runWithAnswer } from '../../../storage/models/foundation/request-effects.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { checkExpand } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import { SubscriptionAnswer, SubscriptionAnswerV2 } from '../../subscriptions/answer.ts';
import { showSubscription, showSubscriptions } from '../../subscriptions/expand.ts';
import { findLineItems, findSubscriptions } from '../../subscriptions/find.ts';
import {
  ActivateSubscription,
  CancelSubscription,
  CancelSubscriptionAnswer,
  CreateSubscription,
  SubscriptionExpand,
  SubscriptionFilter,
  SubscriptionLineItemFilter,
  SubscriptionLineItemListAnswer,
  SubscriptionListAnswer,
  SubscriptionUsageAnswer,
  SubscriptionUsageRequest,
  subscriptionGrammar,
  UpdateSubscription,
} from '../../subscriptions/schema.ts';
import { showUsage } from '../../subscriptions/usage-answer.ts';
import { modifyRoutes } from './modify-routes.ts';
import { planChangeRoutes } from './plan-change-routes.ts';
import { previewRoutes } from './preview-routes.ts';
import { scheduleRoutes } from './schedule-routes.ts';
import { showCancelled, showRequested, toCancelRequest } from './show-cancelled.ts';
import { showMade } from './show-made.ts';

const tag = 'Subscriptions';

const subscriptions = standardRoutes({
  noun: 'subscription',
  tag,
  answer: SubscriptionAnswer,
  model: SubscriptionModel,
  show: (subscription: SubscriptionModel, context) => showSubscription(subscription, context),
  list: { filter: SubscriptionFilter, answer: SubscriptionListAnswer, find: findSubscriptions },
});

export const subscriptionRoutes: Route[] = [
  route({
    method: 'post',
    path: '/subscriptions',
    operation_id: 'createSubscription',
    summary: 'Subscribe a customer to a plan',
    description:
      "Creates a line item for each published price of the plan in the subscription's currency, and an opening " +
      'invoice of the advance charges, which is final at once. With a trial the opening invoice is 0, and the ' +
      'advance charges follow at the end of the trial. A subscription with a later start opens at that time. A reference ' +
      'to a missing coupon or tax rate is refused, with its field. With `checkout` the opening invoice is paid on a page.',
    tag,
    access: 'subscription:write',
    body: CreateSubscription,
    success: 201,
    answer: SubscriptionAnswer,
    idempotency: {
      replay: async (done, _input, context) => {
        const input = { id: done.made('subscription'), invoice_id: done.madeAll('invoice')[0] ?? null };
        const checkout = { subscription_id: input.id, author: toAuthor(context) };
        const paid = await resumeSubscriptionCheckout(context.services, context.scope, checkout);
        if (paid) return showMade(paid, context);
        const made = await resumeSubscriptionCreation(context.services, context.scope, {
          ...input,
          author: toAuthor(context),
        });
        return showMade(made, context);
      },
    },
    handle: async ({ body }, context) => {
      const made = await subscribeOnce(context.services, context.scope, body, toAuthor(context));
      return showMade(made, context);
    },
  }),
  subscriptions.list,
  subscriptions.search,
  route({
    method: 'post',
    path: '/subscriptions/usage',
    operation_id: 'getSubscriptionUsage',
    summary: 'Query usage of a subscription',
    description:
      'Returns usage and charges of the usage line items, priced as on an invoice. Default range: the current period.',
    tag,
    access: 'subscription:read',
    body: SubscriptionUsageRequest,
    success: 200,
    answer: SubscriptionUsageAnswer,
    handle: async ({ body }, context) =>
      showUsage(await loadSubscriptionUsage(context.services, context.scope, body, context.now), context),
  }),
  route({
    method: 'post',
    path: '/subscriptions/lineitems/search',
    operation_id: 'querySubscriptionLineItem',
    summary: 'Search line items across subscriptions',
    description: 'Returns line items with the ids of their subscriptions, one page at a time.',
    tag,
    access: 'subscription:read',
    body: SubscriptionLineItemFilter,
    success: 200,
    answer: SubscriptionLineItemListAnswer,
    handle: ({ body }, context) => findLineItems(body, context),
  }),
  subscriptions.read({
    summary: 'Get a subscription with its details',
    description: 'Returns the subscription with its plan, customer and line items, even if it is cancelled.',
  }),
  route({
    method: 'get',
    path: '/subscriptions/:id/v2',
    operation_id: 'getSubscriptionV2',
    summary: 'Get a subscription (v2)',
    description:
      'Returns only the parts that `expand` names. `plan_prices_out_of_sync` is true if the plan received prices ' +
      'since the last sync.',
    tag,
    access: 'subscription:read',
    params: idParams,
    query: SubscriptionExpand,
    success: 200,
    answer: SubscriptionAnswerV2,
    handle: async ({ params, query }, context) => {
      checkExpand(query.expand ?? [], subscriptionGrammar);
      const { scope, services } = context;
      const subscription = await SubscriptionModel.fetch(scope, params.id, { database: services.postgres });
      const [shown] = await showSubscriptions([subscription], query.expand ?? [], context);
      return { ...shown, plan_prices_out_of_sync: await isOutOfSync(subscription, context) };
    },
  }),
  subscriptions.change({
    summary: 'Update a subscription',
    description:
      'Changes metadata, lookup key or threshold. With a `version`, a concurrent change is refused with 409 ' +
      '`version_conflict`. Also schedules a cancellation, or sets the parent whose invoices include the ' +
      'subscription; each needs a separate request.',
    body: UpdateSubscription,
    handle: ({ params, body }, context) =>
      updateSubscription(context.services, context.scope, { id: params.id, request: body, author: toAuthor(context) }),
  }),
  route({
    method: 'post',
    path: '/subscriptions/:id/activate',
    operation_id: 'activateSubscription',
    summary: 'Activate a draft subscription',
    description:
      'Computes all dates again from `start_date`, including the trial. Then the trial begins, or the ' +
      'subscription opens with an invoice of its advance charges.',
    tag,
    access: 'subscription:write',
    params: idParams,
    body: ActivateSubscription,
    success: 200,
    answer: SubscriptionAnswer,
    idempotency: {
      replay: async (done, { params }, context) => {
        const input = { id: params.id, invoice_id: done.madeAll('invoice')[0] ?? null };
        const opened = await resumeOpening(context.services, context.scope, { ...input, author: toAuthor(context) });
        return showMade({ subscription: opened.subscription, latest_invoice: null }, context);
      },
    },
    handle: async ({ params, body }, context) => {
      const activation = { id: params.id, start_date: body.start_date, author: toAuthor(context) };
      const subscription = await activateSubscription(context.services, context.scope, activation);
      return showMade({ subscription, latest_invoice: null }, context);
    },
  }),
  route({
    method: 'post',
    path: '/subscriptions/:id/cancel',
    operation_id: 'cancelSubscription',
    summary: 'Cancel a subscription',
    description:
      'Cancels now, at the end of the period or on a date. An immediate cancellation invoices arrears up to its ' +
      'date, unless the policy is `skip`; with create_prorations, unused advance charges lower open invoices, and ' +
      'the part that was paid goes to the prepaid wallet. A scheduled cancellation can be undone (`POST /subscriptions/schedules/{schedule_id}/cancel`). ' +
      'Refused for a draft, a cancelled subscription, and one with a scheduled cancellation.',
    tag,
    access: 'subscription:write',
    params: idParams,
    body: CancelSubscription,
    success: 200,
    answer: CancelSubscriptionAnswer,
    idempotency: { replay: async ({ answer }) => answer },
    handle: async ({ params, body }, context) => {
      const answer = (cancelled: CancelledSubscription) => ({
        ...showCancelled(cancelled),
        ...showRequested(body, context),
      });
      const input = toCancelRequest(params.id, body, context);
      return answer(await runWithAnswer(answer, () => cancelSubscription(context.services, context.scope, input)));
    },
  }),
  ...previewRoutes,
  ...modifyRoutes,
  ...scheduleRoutes,
  ...planChangeRoutes,
];

async function isOutOfSync(subscription: SubscriptionModel, { scope, services }: Context): Promise<boolean> {
  const [newest] = await PriceModel.in(scope, services.postgres)
    .where({ entity_type: 'PLAN', entity_id: subscription.plan_id })
    .orderBy('sequence', 'desc')
    .limit(1);
  return (newest?.sequence ?? 0) > Number(subscription.synced_price_sequence ?? 0);
}
