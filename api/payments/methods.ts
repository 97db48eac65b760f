/** The ways to pay that are kept of a customer. */
import { z } from 'zod';
import { removePaymentMethod, savePaymentMethod } from '../../actions/payments/payment-methods.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { narrow } from '../../storage/models/page.ts';
import { PaymentMethodModel } from '../../storage/models/payment-method.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../http/route.ts';
import {
  PaymentMethodAnswer,
  PaymentMethodFilter,
  PaymentMethodListAnswer,
  paymentMethodGrammar,
  SavePaymentMethod,
} from './schema.ts';

const tag = 'Payments';
const path = '/payments/customers/:id/methods';
const methodParams = idParams.extend({
  method_id: z.string().min(1).meta({ description: 'The id of the way to pay.' }),
});

export const paymentMethodRoutes: Route[] = [
  route({
    method: 'get',
    path,
    operation_id: 'listPaymentMethods',
    summary: 'List the ways to pay of a customer',
    description: 'Those that are kept, newest first; the default one collects invoices.',
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
    summary: 'Keep a way to pay of a customer',
    description:
      'As its provider calls it. It is the default one unless the request says otherwise; one that is kept already is changed.',
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
    summary: 'Remove a way to pay',
    description: 'Nothing is charged to it any more. Without another default one, invoices are not collected.',
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
];

async function findMethods(id: string, input: PaymentMethodFilter, { scope, services }: Context) {
  const customer = await CustomerModel.fetch(scope, id, { database: services.postgres });
  const query = narrow(PaymentMethodModel.in(scope, services.postgres), [['customer_id', customer.id]]);
  return fetchPage(query, input, paymentMethodGrammar);
}
