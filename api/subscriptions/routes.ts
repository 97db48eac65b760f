/** Subscriptions: who pays for which prices, in which periods. */

import { resumeCreation, resumeOpening } from '../../actions/payments/collect-opening.ts';
import { activateSubscription } from '../../actions/subscriptions/activate-subscription.ts';
import { type CancelledSubscription, cancelSubscription } from '../../actions/subscriptions/cancel-subscription.ts';
import { createSubscription } from '../../actions/subscriptions/create-subscription.ts';
import { updateSubscription } from '../../actions/subscriptions/update-subscription.ts';
import { loadSubscriptionUsage } from '../../actions/usage/subscription-usage.ts';
import type { InvoiceWithLines } from '../../core/invoice/record.ts';
import { PriceModel } from '../../storage/models/price.ts';
import { runWithAnswer } from '../../storage/models/request-effects.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { checkExpand } from '../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../http/route.ts';
import { standardRoutes } from '../http/standard-routes.ts';
import { SubscriptionAnswer, SubscriptionAnswerV2 } from './answer.ts';
import { showSubscription, showSubscriptions } from './expand.ts';
import { findLineItems, findSubscriptions } from './find.ts';
import { modifyRoutes } from './modify-routes.ts';
import { planChangeRoutes } from './plan-change-routes.ts';
import { scheduleRoutes } from './schedule-routes.ts';
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
} from './schema.ts';
import { showCancelled, showRequested } from './show-cancelled.ts';
import { showUsage } from './usage-answer.ts';
import { showSubscriptionWarnings } from './warnings.ts';

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
      'It gets a line item for each published price of the plan in its currency, and an opening invoice of its advance charges, which is final at once; with a trial an invoice of 0, and the advance charges at its end. One that starts later is opened then. What names something that is not there yet (a coupon, a tax rate) is refused by the field.',
    tag,
    access: 'subscription:write',
    body: CreateSubscription,
    success: 201,
    answer: SubscriptionAnswer,
    idempotency: {
      replay: async (done, _input, context) => {
        const input = { id: done.made('subscription'), invoice_id: done.madeAll('invoice')[0] ?? null };
        const made = await resumeCreation(context.services, context.scope, { ...input, author: toAuthor(context) });
        return showMade(made, context);
      },
    },
    handle: async ({ body }, context) => {
      const made = await createSubscription(context.services, context.scope, body, toAuthor(context));
      return showMade(made, context);
    },
  }),
  subscriptions.list,
  subscriptions.search,
  route({
    method: 'post',
    path: '/subscriptions/usage',
    operation_id: 'getSubscriptionUsage',
    summary: 'Usage and charges of a subscription for a period',
    description: 'Of its usage line items, priced as an invoice would be; the running period unless one is stated.',
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
    description: 'Line items with the ids of their subscriptions, a page at a time.',
    tag,
    access: 'subscription:read',
    body: SubscriptionLineItemFilter,
    success: 200,
    answer: SubscriptionLineItemListAnswer,
    handle: ({ body }, context) => findLineItems(body, context),
  }),
  subscriptions.read({
    summary: 'Get a subscription with its plan, customer and line items',
    description: 'A cancelled subscription is answered, too.',
  }),
  route({
    method: 'get',
    path: '/subscriptions/:id/v2',
    operation_id: 'getSubscriptionV2',
    summary: 'Get a subscription with the parts that are asked for',
    description:
      'Only what `expand` names is answered with it. `plan_prices_out_of_sync` says whether the plan got prices since it began.',
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
    summary: "Change a subscription's metadata, lookup key or threshold",
    description:
      'With a `version`, only if nobody else has changed it since: else the answer is 409 `version_conflict`. A cancellation that is to come, or a parent with which it is invoiced, is set here, too, each by itself.',
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
      'Its dates are computed again from the start that is given, its trial with them, and it is opened with an invoice of its advance charges, or begins its trial.',
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
    summary: 'Cancel a subscription now, at the end of its period or on a date',
    description:
      'An immediate cancellation invoices the arrears up to its date, unless the policy is `skip`; with create_prorations unused time that was charged in advance goes into the prepaid wallet. What is scheduled can be undone (`POST /subscriptions/schedules/{schedule_id}/cancel`). A draft, a cancelled subscription, and one whose cancellation is scheduled already are refused.',
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
      const input = {
        id: params.id,
        cancellation_type: body.cancellation_type,
        cancel_at: body.cancel_at,
        invoice_policy:
          body.cancel_immediately_inovice_policy ?? body.cancel_immediately_invoice_policy ?? 'generate_invoice',
        proration_behavior: body.proration_behavior,
        reason: body.reason,
        author: toAuthor(context),
      };
      return answer(await runWithAnswer(answer, () => cancelSubscription(context.services, context.scope, input)));
    },
  }),
  ...modifyRoutes,
  ...scheduleRoutes,
  ...planChangeRoutes,
];

type CreatedSubscription = {
  readonly subscription: SubscriptionModel;
  readonly latest_invoice: InvoiceWithLines | null;
};

async function showMade({ subscription, latest_invoice }: CreatedSubscription, context: Context) {
  const shown = await showSubscription(subscription, context, latest_invoice);
  return { ...shown, warnings: await showSubscriptionWarnings(subscription, context) };
}

async function isOutOfSync(subscription: SubscriptionModel, { scope, services }: Context): Promise<boolean> {
  const [newest] = await PriceModel.in(scope, services.postgres)
    .where({ entity_type: 'PLAN', entity_id: subscription.plan_id })
    .orderBy('sequence', 'desc')
    .limit(1);
  return (newest?.sequence ?? 0) > Number(subscription.synced_price_sequence ?? 0);
}
