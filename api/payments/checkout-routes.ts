/** Checkout sessions: pages on which customers pay for an action (docs/rules/checkout.md). */
import { archiveCheckout } from '../../actions/lifecycle/checkout/archive-checkout.ts';
import { createCheckout } from '../../actions/lifecycle/checkout/create-checkout.ts';
import { openCheckoutPage } from '../../actions/lifecycle/checkout/start-checkout.ts';
import { createCheckoutSessionShape } from '../../core/payments/checkout/record.ts';
import { CheckoutSessionModel } from '../../storage/models/payments/checkout-session.ts';
import { CheckoutSessionAnswer, showCheckoutSession } from '../foundation/checkout-session.ts';
import { idParams, type Route, route, toAuthor } from '../http/route.ts';

const tag = 'Checkout';

const CreateCheckoutSession = createCheckoutSessionShape.meta({
  id: 'CreateCheckoutSessionRequest',
  example: {
    customer_external_id: 'acme',
    payment_provider: 'sandbox',
    action: 'create_subscription',
    configuration: {
      create_subscription_params: {
        plan_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
        currency: 'usd',
        billing_period: 'MONTHLY',
      },
    },
    success_url: 'https://shop.example/thanks',
    cancel_url: 'https://shop.example/cart',
    idempotency_key: 'cart-4711',
  },
});

export const checkoutRoutes: Route[] = [
  route({
    method: 'post',
    path: '/checkout/sessions',
    operation_id: 'createCheckoutSession',
    summary: 'Create a checkout session',
    description:
      'Creates a subscription, or pays a purchase of credits, through a page of a provider; `payment_action` has ' +
      'its URL. The subscription is incomplete until the payment. Without an amount to pay the session is ' +
      'completed at once. A repeated `idempotency_key` returns the first session.',
    tag,
    access: 'checkoutsession:write',
    body: CreateCheckoutSession,
    success: 201,
    answer: CheckoutSessionAnswer,
    idempotency: {
      replay: async (done, _input, context) => {
        const { scope, services } = context;
        const id = done.made('checkout_session');
        const session = await CheckoutSessionModel.fetch(scope, id, { database: services.postgres });
        return showCheckoutSession(await openCheckoutPage(services, session, toAuthor(context)), context);
      },
    },
    handle: async ({ body }, context) => {
      const input = { request: body, author: toAuthor(context) };
      return showCheckoutSession(await createCheckout(context.services, context.scope, input), context);
    },
  }),
  route({
    method: 'get',
    path: '/checkout/sessions/:id',
    operation_id: 'getCheckoutSession',
    summary: 'Get a checkout session',
    description: 'Returns the session with its page, even if it is archived.',
    tag,
    access: 'checkoutsession:read',
    params: idParams,
    success: 200,
    answer: CheckoutSessionAnswer,
    handle: async ({ params }, context) => {
      const { scope, services } = context;
      const session = await CheckoutSessionModel.fetch(scope, params.id, { database: services.postgres });
      return showCheckoutSession(session, context);
    },
  }),
  route({
    method: 'delete',
    path: '/checkout/sessions/:id',
    operation_id: 'deleteCheckoutSession',
    summary: 'Archive a checkout session',
    description:
      'Closes the page of an unpaid session, which becomes `expired`: its subscription is cancelled and its ' +
      'invoice is void. A payment on the page after that is refunded. Refused for a completed session.',
    tag,
    access: 'checkoutsession:write',
    params: idParams,
    success: 204,
    handle: async ({ params }, context) => {
      await archiveCheckout(context.services, context.scope, { id: params.id, author: toAuthor(context) });
    },
  }),
];
