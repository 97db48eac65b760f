/** Invoices: what was charged, for which period, and what became of it. */

import { computeInvoice } from '../../actions/invoices/compute-invoice.ts';
import { computeLater } from '../../actions/invoices/compute-later.ts';
import { createInvoice } from '../../actions/invoices/create-invoice.ts';
import { editInvoice } from '../../actions/invoices/edit-invoice.ts';
import { finalizeInvoice } from '../../actions/invoices/finalize-by-hand.ts';
import { previewInvoice } from '../../actions/invoices/preview-invoice.ts';
import { updateInvoice, updateInvoicePayment } from '../../actions/invoices/update-invoice.ts';
import { voidInvoice } from '../../actions/invoices/void-invoice.ts';
import { attemptInvoice, collectNow } from '../../actions/payments/attempt-invoice.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { loadInvoiceSummaries } from '../../storage/models/invoice-summary.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import { checkExpand } from '../http/list.ts';
import { answerWithStatus, idParams, MessageAnswer, type Route, route, toAuthor } from '../http/route.ts';
import { standardRoutes } from '../http/standard-routes.ts';
import { loadStartedRun } from '../workflows/replay-workflow.ts';
import { breakDownInvoice } from './broken-down.ts';
import { EVERY_PART, showInvoice, showInvoices } from './expand.ts';
import { findInvoices } from './find.ts';
import {
  ComputeAnswer,
  ComputeInvoice,
  ComputeQuery,
  CreateInvoice,
  InvoiceAnswer,
  InvoiceFilter,
  InvoiceListAnswer,
  InvoiceQuery,
  InvoiceSummaryAnswer,
  invoiceGrammar,
  PreviewInvoice,
  UpdateInvoice,
  UpdatePayment,
  VoidInvoice,
} from './schema.ts';

const tag = 'Invoices';

const invoices = standardRoutes({
  noun: 'invoice',
  tag,
  answer: InvoiceAnswer,
  model: InvoiceModel,
  show: (invoice: InvoiceModel, context) => showInvoice(invoice, context),
  list: { filter: InvoiceFilter, answer: InvoiceListAnswer, find: findInvoices },
});

export const invoiceRoutes: Route[] = [
  route({
    method: 'post',
    path: '/invoices',
    operation_id: 'createInvoice',
    summary: 'Create a one-off invoice',
    description:
      'A draft with the lines of the request, whose amounts add up to `subtotal`, `total` and `amount_due`; without lines the whole amount is one line. With `invoice_status` FINALIZED it is final at once. With an `idempotency_key` that another invoice has, unless it is void, the answer is 409.',
    tag,
    access: 'invoice:write',
    body: CreateInvoice,
    success: 201,
    answer: InvoiceAnswer,
    idempotency: invoices.once,
    handle: async ({ body }, context) =>
      showInvoice(await createInvoice(context.services, context.scope, body, toAuthor(context)), context),
  }),
  invoices.list,
  invoices.search,
  ...(
    [
      ['/invoices/preview', 'getInvoicePreview', 'Preview the next invoice of a subscription'],
      ['/invoices/internal/preview', 'getInternalInvoicePreview', 'Preview an invoice for operators, also of a draft'],
    ] as const
  ).map(([path, operation_id, summary]) =>
    route({
      method: 'post',
      path,
      operation_id,
      summary,
      description:
        'What the invoice at the end of the running period would be now; of a draft subscription its opening. Nothing is ' +
        'written, and ids are empty. The numbers are those that the draft will have, if nothing is used until then.',
      tag,
      access: 'invoice:read',
      body: PreviewInvoice,
      success: 200,
      answer: InvoiceAnswer,
      handle: async ({ body }, context) =>
        showInvoice(await previewInvoice(context.services, context.scope, body, context.now), context),
    }),
  ),
  route({
    method: 'get',
    path: '/invoices/:id',
    operation_id: 'getInvoice',
    summary: 'Get an invoice with its line items',
    description:
      'Each line says in `computed_from` what its amount was computed from. Customer and subscription are answered with it. `group_by` breaks the lines of usage down: the events of their time as they are counted now, and of the amount of the line the share of each group.',
    tag,
    access: 'invoice:read',
    params: idParams,
    query: InvoiceQuery,
    success: 200,
    answer: InvoiceAnswer,
    handle: async ({ params, query }, context) => {
      checkExpand(query.expand ?? [], invoiceGrammar);
      const invoice = await InvoiceModel.fetch(context.scope, params.id, { database: context.services.postgres });
      const expand = [...EVERY_PART, ...(query.expand ?? [])];
      const [shown] = await showInvoices([invoice], { expand, line_items: true }, context);
      return breakDownInvoice(shown!, query, context);
    },
  }),
  invoices.change({
    summary: "Change an invoice's dates, document address or metadata",
    description: 'Of a draft or a final invoice. A due date does not lie in the past. Amounts never change by hand.',
    body: UpdateInvoice,
    handle: ({ params, body }, context) =>
      updateInvoice(context.services, context.scope, { id: params.id, request: body, author: toAuthor(context) }),
  }),
  route({
    method: 'post',
    path: '/invoices/:id/compute',
    operation_id: 'computeInvoice',
    summary: 'Compute a draft invoice anew',
    description:
      'From the usage as it is now; of a draft or a skipped invoice. It is done in the background, and the answer names a workflow to ask after; with `sync=true` it is done at once, and the answer is 200 with the invoice. One that comes to nothing is skipped. What the body states is an edit, which is written with the request: its lines and coupons take the place of those that were computed, and it is computed from its subscription no more (`is_manually_edited`) until it is recalculated.',
    tag,
    access: 'invoice:write',
    params: idParams,
    query: ComputeQuery,
    body: ComputeInvoice,
    success: 202,
    answer: ComputeAnswer,
    idempotency: {
      replay: async (done, { params, query }, context) => {
        if (!query.sync) return { message: beingComputed(params.id), ...(await loadStartedRun(done, context)) };
        const invoice = await InvoiceModel.fetch(context.scope, params.id, { database: context.services.postgres });
        return answerWithStatus(200, {
          invoice: await showInvoice(invoice, context),
          skipped: invoice.invoice_status === 'SKIPPED',
        });
      },
    },
    handle: async ({ params, query, body }, context) => {
      const { services, scope, now } = context;
      const edit = body && Object.values(body).some((stated) => stated !== null) ? body : null;
      const author = toAuthor(context);
      const edited = edit ? await editInvoice(services, scope, { invoice_id: params.id, edit, author }) : null;
      if (query.sync) {
        const { invoice, skipped } = edited ?? (await computeInvoice(services, scope, params.id, now));
        return answerWithStatus(200, { invoice: await showInvoice(invoice, context), skipped });
      }
      const input = { invoice_id: params.id, author };
      const { id: workflow_id, run_id } = await computeLater(services, scope, input);
      return { message: beingComputed(params.id), workflow_id, run_id };
    },
  }),
  route({
    method: 'post',
    path: '/invoices/:id/finalize',
    operation_id: 'finalizeInvoice',
    summary: 'Finalize a draft invoice',
    description:
      'Gives it its number and its due date. Its lines do not change from then on, and it is not computed anew before. One whose amount due is 0 is paid with it. Refused for a draft that was computed before its period ended.',
    tag,
    access: 'invoice:write',
    params: idParams,
    success: 200,
    answer: MessageAnswer,
    idempotency: {
      replay: async (_done, { params: { id } }, context) => {
        const { scope, services } = context;
        await collectNow(services, scope, { invoice_id: id, by: toAuthor(context) });
        return showFinalized(await InvoiceModel.fetch(scope, id, { database: services.postgres }));
      },
    },
    handle: async ({ params }, context) => {
      const invoice = await finalizeInvoice(context.services, context.scope, params.id, context.now);
      await collectNow(context.services, context.scope, { invoice_id: params.id, by: toAuthor(context) });
      return showFinalized(invoice);
    },
  }),
  route({
    method: 'post',
    path: '/invoices/:id/void',
    operation_id: 'voidInvoice',
    summary: 'Void an invoice',
    description:
      'It keeps its number and its lines, and its charges are open again. What was paid on it, and what prepaid credits gave, goes to the prepaid wallet, less what was refunded before. Refused for one that is being paid, that was refunded in full or that is void, and for one that charged usage before its period was over once the invoice of that period is final.',
    tag,
    access: 'invoice:write',
    params: idParams,
    body: VoidInvoice,
    success: 200,
    answer: MessageAnswer,
    idempotency: { replay: async (_done, { params }) => showVoided(params.id) },
    handle: async ({ params, body }, context) => {
      const voiding = { id: params.id, metadata: body?.metadata ?? null, author: toAuthor(context) };
      await voidInvoice(context.services, context.scope, voiding);
      return showVoided(params.id);
    },
  }),
  route({
    method: 'put',
    path: '/invoices/:id/payment',
    operation_id: 'updateInvoicePaymentStatus',
    summary: 'Set the payment status of an invoice by hand',
    description:
      'Of a final invoice. `amount` is what was paid in all: of SUCCEEDED exactly the amount due, of OVERPAID more, of PENDING and FAILED less. A subscription that waits for its opening invoice becomes active when it is paid.',
    tag,
    access: 'invoice:write',
    params: idParams,
    body: UpdatePayment,
    success: 200,
    answer: InvoiceAnswer,
    handle: async ({ params, body }, context) => {
      const update = { id: params.id, request: body, author: toAuthor(context) };
      return showInvoice(await updateInvoicePayment(context.services, context.scope, update), context);
    },
  }),
  route({
    method: 'post',
    path: '/invoices/:id/payment/attempt',
    operation_id: 'attemptInvoicePayment',
    summary: 'Try to collect an invoice now',
    description:
      'A postpaid wallet of who is invoiced pays what it can of a final invoice, and what remains is charged to the way to pay of its subscription, else to the default one of its customer; an automatic collection that waits for its next attempt is tried at once. The answer says what came of it. Refused where there is nothing to charge.',
    tag,
    access: 'invoice:write',
    params: idParams,
    success: 200,
    answer: MessageAnswer,
    idempotency: {
      replay: async (done, { params }, context) => {
        const { scope, services } = context;
        const tried = await collectNow(services, scope, { invoice_id: params.id, by: toAuthor(context) });
        const id = done.touched('payment');
        return showPaymentAttempt(tried ?? (await PaymentModel.fetch(scope, id, { database: services.postgres })));
      },
    },
    handle: async ({ params }, context) => {
      const input = { id: params.id, by: toAuthor(context) };
      return showPaymentAttempt(await attemptInvoice(context.services, context.scope, input));
    },
  }),
  route({
    method: 'get',
    path: '/customers/:id/invoices/summary',
    operation_id: 'getCustomerInvoiceSummary',
    summary: 'What a customer was billed and owes, per currency',
    description:
      'Final invoices only. Overdue is what remains to be paid behind its due date; of unpaid invoices, charges for usage and others are told apart.',
    tag,
    access: 'invoice:read',
    params: idParams,
    success: 200,
    answer: InvoiceSummaryAnswer,
    handle: async ({ params }, { scope, services, now }) => {
      const customer = await CustomerModel.fetch(scope, params.id, { database: services.postgres });
      const question = { customer_id: customer.id, now };
      const summaries = await loadInvoiceSummaries(scope, question, services.postgres);
      return {
        customer_id: customer.id,
        default_currency: summaries[0]?.currency ?? '',
        summaries: summaries.map((summary) => ({ customer_id: customer.id, ...summary })),
      };
    },
  }),
];

function beingComputed(id: string): string {
  return `invoice ${id} is being computed`;
}

function showFinalized({ id, invoice_number }: Pick<InvoiceModel, 'id' | 'invoice_number'>) {
  return { message: `invoice ${id} is final, its number is ${invoice_number}` };
}

function showVoided(id: string) {
  return { message: `invoice ${id} is void` };
}

function showPaymentAttempt({ id, payment_status, error_message }: PaymentModel) {
  return { message: `payment ${id} is ${payment_status}${error_message ? `: ${error_message}` : ''}` };
}
