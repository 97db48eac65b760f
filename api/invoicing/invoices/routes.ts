/** Invoices: charges of a period, and their payment status. */

import { computeInvoice } from '../../../actions/invoicing/invoices/compute-invoice.ts';
import { computeLater } from '../../../actions/invoicing/invoices/compute-later.ts';
import { createInvoice, previewManualInvoice } from '../../../actions/invoicing/invoices/create-invoice.ts';
import { editInvoice } from '../../../actions/lifecycle/invoices/edit-invoice.ts';
import { finalizeInvoice } from '../../../actions/lifecycle/invoices/finalize-by-hand.ts';
import { previewInvoice } from '../../../actions/lifecycle/invoices/preview-invoice.ts';
import { updateInvoice, updateInvoicePayment } from '../../../actions/lifecycle/invoices/update-invoice.ts';
import { voidInvoice } from '../../../actions/lifecycle/invoices/void-invoice.ts';
import { attemptInvoice, collectNow } from '../../../actions/lifecycle/payments/attempt-invoice.ts';
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { loadInvoiceSummaries } from '../../../storage/models/invoicing/invoice-summary.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { loadStartedRun } from '../../foundation/workflows/replay-workflow.ts';
import { checkExpand } from '../../http/list.ts';
import {
  answerWithStatus,
  idParams,
  MessageAnswer,
  type Route,
  route,
  toAuthor,
  toPreviewContext,
} from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
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
      'Creates a draft with the lines of the request, whose amounts add up to `subtotal`, `total` and ' +
      '`amount_due`. Without lines the whole amount becomes one line. `invoice_status` FINALIZED makes it final ' +
      'at once. Refused with 409 if another invoice that is not void has the `idempotency_key`.',
    tag,
    access: 'invoice:write',
    body: CreateInvoice,
    success: 201,
    answer: InvoiceAnswer,
    idempotency: invoices.once,
    handle: async ({ body }, context) =>
      showInvoice(await createInvoice(context.services, context.scope, body, toAuthor(context)), context),
  }),
  route({
    method: 'post',
    path: '/invoices/one-off/preview',
    operation_id: 'previewOneOffInvoice',
    summary: 'Preview a one-off invoice',
    description:
      'Returns the invoice as its creation would, with coupons, and with taxes and credits if `invoice_status` is ' +
      'FINALIZED. Nothing is written; ids are empty, and no number is assigned. A request that the creation would ' +
      'refuse is refused.',
    tag,
    access: 'invoice:read',
    body: CreateInvoice,
    success: 200,
    answer: InvoiceAnswer,
    handle: ({ body }, context) => {
      const show = (invoice: InvoiceWithLines, database: Database) =>
        showInvoice(invoice, toPreviewContext(context, database));
      const preview = { request: body, author: toAuthor(context), show };
      return previewManualInvoice(context.services, context.scope, preview);
    },
  }),
  invoices.list,
  invoices.search,
  ...(
    [
      ['/invoices/preview', 'getInvoicePreview', 'Preview the next subscription invoice'],
      ['/invoices/internal/preview', 'getInternalInvoicePreview', 'Preview an invoice for operators'],
    ] as const
  ).map(([path, operation_id, summary]) =>
    route({
      method: 'post',
      path,
      operation_id,
      summary,
      description:
        'Returns the invoice at the end of the current period as it would be now; for a draft subscription, its ' +
        'opening invoice. Nothing is written, and ids are empty. The numbers equal those of the later draft if no ' +
        'further usage arrives.',
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
    summary: 'Get an invoice with line items',
    description:
      'Returns the invoice with its customer and subscription. `computed_from` of each line lists the inputs of ' +
      "its amount. `group_by` breaks usage lines down into groups: events of the line's period as counted now, " +
      "and the share of the line's amount.",
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
    summary: 'Update an invoice',
    description:
      'Changes dates, document address or metadata of a draft or final invoice. A due date in the past is refused. ' +
      'Amounts cannot be changed by hand.',
    body: UpdateInvoice,
    handle: ({ params, body }, context) =>
      updateInvoice(context.services, context.scope, { id: params.id, request: body, author: toAuthor(context) }),
  }),
  route({
    method: 'post',
    path: '/invoices/:id/compute',
    operation_id: 'computeInvoice',
    summary: 'Compute a draft invoice again',
    description:
      'Computes a draft or skipped invoice from the current usage. It runs in the background, and the answer ' +
      'names a workflow that can be polled; with `sync=true` it runs at once, and the answer is 200 with the ' +
      'invoice. An invoice without charges is skipped. Fields of the body ' +
      'edit the invoice at once: the sent lines and coupons replace the computed ones, and the invoice is no longer computed from its ' +
      'subscription (`is_manually_edited`) until it is recalculated.',
    tag,
    access: 'invoice:write',
    params: idParams,
    query: ComputeQuery,
    body: ComputeInvoice,
    success: 202,
    other_success: 200,
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
      const edit = body && Object.values(body).some((field) => field !== null) ? body : null;
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
      'Assigns the number and the due date. The lines are not recomputed before that, and do not change afterwards. An ' +
      'invoice with an amount due of 0 becomes paid. Refused for a draft that was computed before the end of its ' +
      'period.',
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
      'Voids the invoice. It retains its number and its lines, and its charges are open again. Payments and ' +
      'applied prepaid credits go to the prepaid wallet, net of earlier refunds. Refused for an invoice that is ' +
      'being paid, is fully refunded or is void. Also refused for an invoice that charged usage before the end of ' +
      'its period, once the invoice of that period is final.',
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
    summary: "Set an invoice's payment status",
    description:
      'Sets the payment status of a final invoice by hand. `amount` is the total paid: exactly the amount due for ' +
      'SUCCEEDED, more for OVERPAID, less for PENDING and FAILED. A subscription that waits for its opening ' +
      'invoice becomes active when the invoice is paid.',
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
    summary: 'Collect an invoice now',
    description:
      'Collects a final invoice. A postpaid wallet of the invoiced customer pays first, as far as its balance ' +
      "reaches. The rest is charged to the payment method of the subscription, else to the customer's default " +
      'one. A scheduled collection attempt runs at once. The answer reports the outcome. Refused if there is ' +
      'nothing to charge.',
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
    summary: "Summarize a customer's invoices",
    description:
      'Returns billed and owed amounts per currency, for final invoices only. Overdue is the unpaid amount past ' +
      'its due date. Unpaid amounts are split into usage charges and other charges.',
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
