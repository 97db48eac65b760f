/** Payments of invoices, what they are charged to, and what providers tell of them. */

import { createPayment } from '../../actions/payments/create-payment.ts';
import { processPayment } from '../../actions/payments/process-payment.ts';
import { actInSandbox } from '../../actions/payments/receive-notice.ts';
import { refundPayment } from '../../actions/payments/refund-payment.ts';
import { archivePayment, updatePayment } from '../../actions/payments/update-payment.ts';
import { narrow } from '../../storage/models/page.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import type { Effects } from '../http/effects.ts';
import { withInnerKey } from '../http/idempotency.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../http/route.ts';
import { standardRoutes } from '../http/standard-routes.ts';
import { showPayment, showPayments } from './expand.ts';
import { paymentMethodRoutes } from './methods.ts';
import { providerNoticeRoutes } from './notices.ts';
import {
  ActInSandbox,
  CreatePayment,
  PaymentAnswer,
  PaymentFilter,
  PaymentListAnswer,
  paymentGrammar,
  RefundPayment,
  UpdatePayment,
} from './schema.ts';

const tag = 'Payments';

const payments = standardRoutes({
  noun: 'payment',
  tag,
  answer: PaymentAnswer,
  model: PaymentModel,
  show: showPayment,
  list: { filter: PaymentFilter, answer: PaymentListAnswer, find: findPayments },
});

const verb = {
  method: 'post',
  tag,
  access: 'payment:write',
  params: idParams,
  success: 200,
  answer: PaymentAnswer,
} as const;

/** What is left of it is done by the clock. */
const asItIs = {
  replay: async (_done: Effects, { params }: { params: { id: string } }, context: Context) => {
    const { scope, services } = context;
    return showPayment(await PaymentModel.fetch(scope, params.id, { database: services.postgres }), context);
  },
};

export const paymentRoutes: Route[] = [
  payments.create({
    summary: 'Pay an invoice, or record that it was paid',
    description:
      'OFFLINE is booked at once, and may be more than is due. CARD and ACH are charged, at most what remains; the answer says what came of it. PAYMENT_LINK answers a `payment_url`. With `process_payment` false nothing happens before `process`. A key that comes again answers the payment that it made.',
    body: CreatePayment,
    idempotency: 'inner_key',
    handle: ({ body }, context) => {
      const options = { request: withInnerKey(body, context), author: toAuthor(context) };
      return createPayment(context.services, context.scope, options);
    },
  }),
  payments.list,
  payments.search,
  payments.read({
    summary: 'Get a payment with its attempts and refunds',
    description: 'An archived payment is answered, too.',
  }),
  payments.change({
    summary: 'Change a payment, or say what became of it',
    description:
      'Its amount and what it is charged to before it is settled, its metadata always. SUCCEEDED, FAILED and VOIDED may be said of what no provider decides; VOIDED of money that was received elsewhere takes it off the invoice again. REFUNDED follows from a refund.',
    body: UpdatePayment,
    handle: ({ params, body }, context) =>
      updatePayment(context.services, context.scope, { id: params.id, request: body, author: toAuthor(context) }),
  }),
  payments.archive({
    summary: 'Archive a payment',
    description: 'One that has brought no money and is about to bring none. It is not tried any more.',
    handle: ({ params }, context) =>
      archivePayment(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
  route({
    ...verb,
    path: '/payments/:id/process',
    operation_id: 'processPayment',
    summary: 'Process a payment now',
    description:
      'One that is INITIATED or PENDING, also before its next attempt is due. The answer says what came of it.',
    idempotency: asItIs,
    handle: async ({ params }, context) => {
      const options = { id: params.id, by: toAuthor(context) };
      return showPayment(await processPayment(context.services, context.scope, options), context);
    },
  }),
  route({
    ...verb,
    path: '/payments/:id/refund',
    operation_id: 'refundPayment',
    summary: 'Give a payment back, or a part of it',
    description:
      'By the provider that took it; of OFFLINE it is recorded. All refunds together never come to more than was paid. What cannot be given back is refused with the reason. Without an `idempotency_key` refunds of the same amount and reason within one minute are one.',
    body: RefundPayment,
    idempotency: 'inner_key',
    handle: async ({ params, body }, context) => {
      const options = { id: params.id, request: withInnerKey(body, context), author: toAuthor(context) };
      return showPayment(await refundPayment(context.services, context.scope, options), context);
    },
  }),
  route({
    ...verb,
    path: '/payments/:id/sandbox',
    operation_id: 'actInSandbox',
    summary: 'Act as the customer at the sandbox',
    description: 'Pays, or declines, what is open there: a payment link, a charge to be confirmed, one that pays late.',
    body: ActInSandbox,
    idempotency: asItIs,
    handle: async ({ params, body }, context) => {
      const options = { id: params.id, outcome: body.outcome, by: toAuthor(context) };
      return showPayment(await actInSandbox(context.services, context.scope, options), context);
    },
  }),
  ...paymentMethodRoutes,
  ...providerNoticeRoutes,
];

async function findPayments(input: PaymentFilter, context: Context) {
  const { scope, services } = context;
  const query = narrow(PaymentModel.in(scope, services.postgres), [
    ['id', input.payment_ids],
    ['destination_type', input.destination_type],
    ['destination_id', input.destination_id],
    ['payment_method_type', input.payment_method_type],
    ['payment_status', input.payment_status],
    ['payment_gateway', input.payment_gateway],
    ['currency', input.currency?.toLowerCase()],
    ['gateway_payment_id', input.gateway_payment_id],
    ['gateway_tracking_id', input.gateway_tracking_id],
  ]);
  const { items, pagination } = await fetchPage(query, input, paymentGrammar);
  return { items: await showPayments(items, input.expand ?? [], context), pagination };
}
