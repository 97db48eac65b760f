/** Saved payment methods of a customer. */
import { z } from 'zod';
import { startCustomerSetup } from '../../actions/payments/card-setups.ts';
import { removePaymentMethod, savePaymentMethod } from '../../actions/payments/payment-methods.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { narrow } from '../../storage/models/foundation/page.ts';
import { PaymentMethodModel } from '../../storage/models/payments/payment-method.ts';
import { requestIdentity } from '../http/idempotency.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../http/route.ts';
import {
  CardSetupAnswer,
  PaymentMethodAnswer,
  PaymentMethodFilter,
  PaymentMethodListAnswer,
  paymentMethodGrammar,
  SavePaymentMethod,
  StartCardSetup,
} from './schema.ts';

const tag = 'Payments';
const path = '/payments/customers/:id/methods';
const methodParams = idParams.extend({
  method_id: z.string().min(1).meta({ description: 'Id of the payment method.' }),
});

export const paymentMethodRoutes: Route[] = [
  route({
    method: 'get',
    path,
    operation_id: 'listPaymentMethods',
    summary: "List a customer's payment methods",
    description: 'Returns the saved payment methods, newest first. Invoices are collected from the default one.',
    tag,
    access: 'payment:read',
    params: idParams,
    query: PaymentMethodFilter,
    success: 200,
    answer: PaymentMethodListAnswer,
    handle: ({ params, query }, context) => findMethods(params.id, query, context),
  }),
  route({
    method: 'post',
    path,
    operation_id: 'savePaymentMethod',
    summary: 'Save a payment method',
    description:
      "Saves a payment method under its provider's id. It becomes the default unless the request says otherwise. " +
      'A method that is saved already is updated.',
    tag,
    access: 'payment:write',
    params: idParams,
    body: SavePaymentMethod,
    success: 201,
    answer: PaymentMethodAnswer,
    idempotency: {
      replay: (done, _input, { scope, services }) =>
        PaymentMethodModel.fetch(scope, done.touched('payment_method'), { database: services.postgres }),
    },
    handle: ({ params, body }, context) =>
      savePaymentMethod(context.services, context.scope, {
        customer_id: params.id,
        request: body,
        author: toAuthor(context),
      }),
  }),
  route({
    method: 'delete',
    path: `${path}/:method_id`,
    operation_id: 'removePaymentMethod',
    summary: 'Remove a payment method',
    description:
      'Removes the method; nothing is charged to it afterwards. Without another default method, invoices are not collected.',
    tag,
    access: 'payment:write',
    params: methodParams,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ params }, context) => {
      const removing = { customer_id: params.id, id: params.method_id, author: toAuthor(context) };
      await removePaymentMethod(context.services, context.scope, removing);
      return { message: 'payment method removed' };
    },
  }),
  route({
    method: 'post',
    path: '/payments/customers/:id/setup/intent',
    operation_id: 'startCardSetup',
    summary: 'Start a card setup',
    description:
      'Starts a setup at a provider, in which the customer enters a card without paying. With `success_url` the ' +
      'answer has a page for that. The card is saved here when the provider reports it by its webhook.',
    tag,
    access: 'payment:write',
    // The client secret lets its holder finish the setup.
    shows_secret: true,
    params: idParams,
    body: StartCardSetup,
    success: 201,
    answer: CardSetupAnswer,
    // With an idempotency key a repeated request returns the same setup; without one each request starts a new one.
    idempotency: 'same',
    handle: async ({ params, body }, context) => {
      const author = toAuthor(context);
      const key = `setup:${requestIdentity(context) ?? newId('payment_method', author.now.getTime())}`;
      const setup = { customer_id: params.id, request: body, key, author };
      const started = await startCustomerSetup(context.services, context.scope, setup);
      const { provider, provider_setup_id: setup_intent_id, url: checkout_url, client_secret } = started;
      return { provider, customer_id: params.id, setup_intent_id, checkout_url, client_secret };
    },
  }),
];

async function findMethods(id: string, input: PaymentMethodFilter, { scope, services }: Context) {
  const customer = await CustomerModel.fetch(scope, id, { database: services.postgres });
  const query = narrow(PaymentMethodModel.in(scope, services.postgres), [['customer_id', customer.id]]);
  return fetchPage(query, input, paymentMethodGrammar);
}
