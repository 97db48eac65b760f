/** Previews of a new subscription and of a cancellation (docs/rules/invoices.md, "Preview and invoice agree"). */
import { previewFollowingInvoice } from '../../../actions/lifecycle/invoices/preview-invoice.ts';
import { previewCancellation } from '../../../actions/lifecycle/subscriptions/cancel-subscription.ts';
import { previewSubscription } from '../../../actions/lifecycle/subscriptions/create-subscription.ts';
import { idParams, type Route, route, toAuthor, toPreviewContext } from '../../http/route.ts';
import { PreviewSubscriptionAnswer } from '../../subscriptions/answer.ts';
import { CancelSubscription, CancelSubscriptionPreviewAnswer, CreateSubscription } from '../../subscriptions/schema.ts';
import { showCancelled, showRequested, toCancelRequest } from './show-cancelled.ts';
import { showMade } from './show-made.ts';

const common = { method: 'post', tag: 'Subscriptions', access: 'subscription:read', success: 200 } as const;

export const previewRoutes: Route[] = [
  route({
    ...common,
    path: '/subscriptions/preview',
    operation_id: 'previewSubscription',
    summary: 'Preview a new subscription',
    description:
      'Returns the subscription as its creation would, with its line items and its opening invoice before ' +
      'collection (`latest_invoice`; null with a later start), and the invoice after it (`next_invoice`). Nothing is ' +
      'written; ids are empty, and no number is assigned. A request that the creation would refuse is refused.',
    body: CreateSubscription,
    answer: PreviewSubscriptionAnswer,
    handle: ({ body }, context) =>
      previewSubscription(context.services, context.scope, {
        request: body,
        author: toAuthor(context),
        show: async (made, database) => {
          const created = { subscription: made.subscription, now: context.now };
          const next_invoice = await previewFollowingInvoice(context.services, database, created);
          return { ...(await showMade(made, toPreviewContext(context, database))), next_invoice };
        },
      }),
  }),
  route({
    ...common,
    path: '/subscriptions/:id/cancel/preview',
    operation_id: 'previewSubscriptionCancellation',
    summary: 'Preview a cancellation',
    description:
      'Returns the answer of the cancellation, and the invoice of its arrears (`final_invoice`). Nothing is ' +
      'written, and no number is assigned. A request that the cancellation would refuse is refused.',
    params: idParams,
    body: CancelSubscription,
    answer: CancelSubscriptionPreviewAnswer,
    handle: ({ params, body }, context) =>
      previewCancellation(context.services, context.scope, {
        request: toCancelRequest(params.id, body, context),
        show: async (cancelled) => ({
          ...showCancelled(cancelled),
          ...showRequested(body, context),
          final_invoice: cancelled.invoice,
        }),
      }),
  }),
];
