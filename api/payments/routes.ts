/** Payments of invoices, payment methods, and notices of providers. */

import { createPayment } from '../../actions/lifecycle/payments/create-payment.ts';
import { processPayment } from '../../actions/lifecycle/payments/process-payment.ts';
import { applySimulatedOutcome } from '../../actions/lifecycle/payments/receive-notice.ts';
import { refundPayment } from '../../actions/lifecycle/payments/refund-payment.ts';
import { archivePayment, updatePayment } from '../../actions/lifecycle/payments/update-payment.ts';
import { narrow } from '../../storage/models/foundation/page.ts';
import { PaymentModel } from '../../storage/models/payments/payment.ts';
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

/** Answers a repeated request with the current payment; the scheduler completes unfinished work. */
const asItIs = {
  replay: async (_done: Effects, { params }: { params: { id: string } }, context: Context) => {
    const { scope, services } = context;
    return showPayment(await PaymentModel.fetch(scope, params.id, { database: services.postgres }), context);
  },
};

export const paymentRoutes: Route[] = [
  payments.create({
    summary: 'Create a payment for an invoice',
    description:
      'Pays an invoice, or records a payment. OFFLINE is booked at once and may exceed the amount due. CARD and ' +
      'ACH are charged, up to the unpaid amount, and the answer reports the outcome. PAYMENT_LINK returns a ' +
      '`payment_url`. With `process_payment` false the payment waits for `POST /payments/{id}/process`. A ' +
      'repeated key returns the payment that it created.',
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
    summary: 'Get a payment with its attempts',
    description: 'Returns the payment with its attempts and refunds, even if it is archived.',
  }),
  payments.change({
    summary: 'Update a payment',
    description:
      'Changes the amount and the payment method before the payment is settled, and the metadata at any time. ' +
      'SUCCEEDED, FAILED and VOIDED can be set if no provider decides the outcome. VOIDED removes money that was ' +
      'received elsewhere from the invoice again. REFUNDED cannot be set; it follows from a refund. While the ' +
      'connection needs attention, a `reason` allows what its provider would decide.',
    body: UpdatePayment,
    handle: ({ params, body }, context) =>
      updatePayment(context.services, context.scope, { id: params.id, request: body, author: toAuthor(context) }),
  }),
  payments.archive({
    summary: 'Archive a payment',
    description:
      'Archives a payment and stops its attempts. Refused if money was received with the payment or may still be, also if a connected provider knows the payment.',
    handle: ({ params }, context) =>
      archivePayment(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
  route({
    ...verb,
    path: '/payments/:id/process',
    operation_id: 'processPayment',
    summary: 'Process a payment now',
    description:
      'Processes a payment that is INITIATED or PENDING, even before its next attempt is due. The answer reports the outcome. For a VOIDED payment whose page is not closed yet, it closes the page.',
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
    summary: 'Refund a payment',
    description:
      'Refunds a payment or a part of it through its provider; a refund of OFFLINE is only recorded. The refunds ' +
      'never exceed the paid amount; an impossible refund is refused with the reason. A FAILED or VOIDED payment is refunded ' +
      'only if money was received for it and its automatic refund has failed. Without an ' +
      '`idempotency_key`, refunds of equal amount and reason within one minute count as one.',
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
    summary: 'Act as the sandbox customer',
    description:
      'Pays or declines an open item of the sandbox: a payment link, a charge that needs confirmation, or a delayed payment.',
    body: ActInSandbox,
    idempotency: asItIs,
    handle: async ({ params, body }, context) => {
      const options = { id: params.id, outcome: body.outcome, by: toAuthor(context) };
      return showPayment(await applySimulatedOutcome(context.services, context.scope, options), context);
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
